// Package settings has the section providers.karpenter of the configuration.
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

// Section is the key providers.karpenter of the configuration.
var Section = section.Section{Key: "karpenter", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Declared[Karpenter]()}

// Karpenter is the content of providers.karpenter.
type Karpenter struct {
	Timeout time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves. Nil selects all Nodes that no other
	// provider claims.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the user names that Karpenter uses in its requests about Nodes.
	Users []string `json:"users"`
}

// Serves implements section.Provider.
func (c *Karpenter) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users, Drains: true, PromisesNone: true}
}
