// Package settings is the section of the configuration about remediators of the cluster.
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

// Section is providers.external.
var Section = section.Section{Key: "external", Schema: schema, Steps: map[string]string{"external": "", "external-replace": ""}, Read: section.Reading(read)}

// External is the provider. Its templates are in the plans.
type External struct {
	Timeout time.Duration
	// NodeSelector says which Nodes it serves; nil: all.
	NodeSelector k8slabels.Selector
	// Users are as whom the Machine API works on Nodes.
	Users []string
}

type raw struct {
	Timeout      string
	NodeSelector *metav1.LabelSelector
	Users        []string
}

func read(r section.Reader, at section.Pointer, c *raw) section.Provider {
	timeout, _ := r.Duration(at.To("timeout"), c.Timeout, time.Second)
	return &External{Timeout: timeout, NodeSelector: r.Nodes(at.To("nodeSelector"), c.NodeSelector), Users: c.Users}
}

// Serves is section.Provider's.
func (c *External) Serves() remediations.Provider {
	return remediations.Provider{Steps: []string{"external", "external-replace"}, NodeSelector: c.NodeSelector, Users: c.Users}
}

// Warn is section.Provider's.
func (c *External) Warn(section.Pointer, func(p section.Pointer, format string, args ...any)) {}
