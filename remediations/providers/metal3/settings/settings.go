// Package settings is Metal3's section of the configuration.
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

// Section is providers.metal3.
var Section = section.Section{Key: "metal3", Schema: schema, Steps: map[string]string{"reboot": ""}, Read: section.Reading(read)}

// Metal3 is the provider.
type Metal3 struct {
	Namespace string
	Timeout   time.Duration
	// NodeSelector says which Nodes it serves; nil: those with its spec.providerID.
	NodeSelector k8slabels.Selector
}

type raw struct {
	Namespace, Timeout string

	NodeSelector *metav1.LabelSelector
}

func read(r section.Reader, at section.Pointer, c *raw) section.Provider {
	timeout, _ := r.Duration(at.To("timeout"), c.Timeout, time.Second)
	return &Metal3{Namespace: c.Namespace, Timeout: timeout, NodeSelector: r.Nodes(at.To("nodeSelector"), c.NodeSelector)}
}

// Serves is section.Provider's.
func (c *Metal3) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"reboot"}, Scheme: "metal3://", NodeSelector: c.NodeSelector}
}

// Warn is section.Provider's.
func (c *Metal3) Warn(section.Pointer, func(p section.Pointer, format string, args ...any)) {}
