// Package settings has the section providers.external of the configuration: remediators in the
// cluster.
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

// Section is the key providers.external of the configuration.
var Section = section.Section{Key: "external", Schema: schema, Steps: map[string]string{"external": "", "external-replace": ""}, Read: section.Declared[External]()}

// External is the content of providers.external. The templates are in the plans.
type External struct {
	Timeout time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the user names that the Machine API's controllers use in their requests about
	// Nodes.
	Users []string `json:"users"`
}

// Serves implements section.Provider.
func (c *External) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"external", "external-replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}
