// Package settings is the section of the configuration about remediators of the cluster.
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

// Section is providers.external.
var Section = section.Section{Key: "external", Schema: schema, Steps: map[string]string{"external": "", "external-replace": ""}, Read: section.Declared[External]()}

// External configures the provider. Its templates are in the plans.
type External struct {
	Timeout time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves; nil: all.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the users that the Machine API's requests about Nodes come from.
	Users []string `json:"users"`
}

// Serves implements section.Provider.
func (c *External) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"external", "external-replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}
