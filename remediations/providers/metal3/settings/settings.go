// Package settings is Metal3's section of the configuration.
package settings

import (
	_ "embed"
	"time"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.metal3.
var Section = section.Section{Key: "metal3", Schema: schema, Steps: map[string]string{"reboot": ""}, Read: section.Declared[Metal3]()}

// Metal3 configures the provider.
type Metal3 struct {
	Namespace string        `json:"namespace"`
	Timeout   time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves; nil: those with Metal3's
	// spec.providerID.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Serves implements section.Provider.
func (c *Metal3) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot"}, Scheme: "metal3://", NodeSelector: c.NodeSelector}
}
