// Package settings is Karpenter's section of the configuration.
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

// Section is providers.karpenter.
var Section = section.Section{Key: "karpenter", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Declared[Karpenter]()}

// Karpenter is the Karpenter provider.
type Karpenter struct {
	Timeout time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves; nil: any that no other provider
	// knows.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
	// Users are the users that Karpenter's requests about Nodes come from.
	Users []string `json:"users"`
}

// Serves implements section.Provider.
func (c *Karpenter) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users, Drains: true, PromisesNone: true}
}
