// Package settings is Karpenter's section of the configuration.
package settings

import (
	_ "embed"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
)

//go:embed schema.json
var schema string

// Section is providers.karpenter.
var Section = section.Section{Key: "karpenter", Schema: schema, Steps: map[string]string{"replace": ""}, Read: section.Reading(read)}

// Karpenter is the Karpenter provider.
type Karpenter struct {
	Timeout time.Duration
	// NodeSelector says which Nodes it serves; nil: any that no other provider knows.
	NodeSelector k8slabels.Selector
	// Users are as whom Karpenter works on Nodes.
	Users []string
}

type raw struct {
	Timeout      string
	NodeSelector *metav1.LabelSelector
	Users        []string
}

func read(r section.Reader, at section.Pointer, c *raw) section.Provider {
	timeout, _ := r.Duration(at.To("timeout"), c.Timeout, time.Second)
	return &Karpenter{Timeout: timeout, NodeSelector: r.Nodes(at.To("nodeSelector"), c.NodeSelector), Users: c.Users}
}

// Serves is section.Provider's.
func (c *Karpenter) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"replace"}, NodeSelector: c.NodeSelector, Users: c.Users, Drains: true, PromisesNone: true}
}

// Warn is section.Provider's.
func (c *Karpenter) Warn(section.Pointer, func(p section.Pointer, format string, args ...any)) {}
