// Package settings has the section providers.annotation of the configuration: reboots by
// annotation.
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

// Section is the key providers.annotation of the configuration.
var Section = section.Section{Key: "annotation", Schema: schema, Steps: map[string]string{"reboot": ""}, Read: section.Declared[Annotation]()}

const (
	Metal3   = "metal3"
	Gardener = "gardener"
)

// Presets has the annotation of each known controller, by the preset's name.
var Presets = map[string]Annotation{
	// Source: deckhouse/deckhouse
	// candi/bashible/common-steps/all/095_check_reboot_annotation.sh.tpl. The script on the node
	// ignores the value. It removes the annotation when the node is drained.
	"deckhouse": {Key: "update.node.deckhouse.io/reboot", Value: "drydock"},
	// gardener/machine-controller-manager issue 1106 proposes this annotation. No release acts on
	// it yet (2026-09).
	Gardener: {Key: "node.machine.gardener.cloud/trigger-reboot", Value: "true"},
	// Source: metal3-io/baremetal-operator apis/metal3.io/v1alpha1/baremetalhost_types.go
	Metal3: {Key: "reboot.metal3.io", Value: `{"mode":"hard"}`, Object: &Object{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost"}},
}

// Annotation is the content of providers.annotation.
type Annotation struct {
	Preset string `json:"preset"`
	Key    string `json:"key"`
	Value  string `json:"value"`
	Done   string `json:"done"`
	// Object is the kind of the objects to annotate, and Namespace is their namespace. If Object is
	// nil, Drydock annotates the Node itself.
	Object    *Object       `json:"object"`
	Namespace string        `json:"namespace"`
	Timeout   time.Duration `json:"timeout"`
	// NodeSelector selects the Nodes that the provider serves. A nil selector selects
	// all Nodes; with the preset metal3, all Nodes whose spec.providerID begins with metal3://.
	NodeSelector k8slabels.Selector `json:"nodeSelector"`
}

// Object names a kind of API objects that stand for machines, for example BareMetalHost.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Check implements section.Checker.
func (c *Annotation) Check(r section.Reader, at section.Pointer) {
	preset, known := Presets[c.Preset]
	switch {
	case r.Faulty(at.To("preset")):
		return
	case known && (c.Key != "" || c.Value != "" || c.Done != "" || c.Object != nil):
		r.Fault(at, "preset %s already has key, value, done and object; remove these keys, or remove preset", c.Preset)
		return
	case known:
		c.Key, c.Value, c.Object = preset.Key, preset.Value, preset.Object
	case c.Key == "" || c.Value == "":
		r.Fault(at, "needs preset, or the annotation to set: key and value")
		return
	}
	for key, value := range map[string]string{"key": c.Key, "done": c.Done} {
		if remediations.Relevant(value) {
			r.Fault(at.To(key), "%s is Drydock's own key; write the key that the controller of your machines acts on", value)
		}
	}
	switch {
	case c.Done != "" && c.Done == c.Key:
		r.Fault(at.To("done"), "is the same as key; write the key that the controller sets when it is done, or remove done")
	case c.Object != nil && c.Namespace == "":
		r.Fault(at, "needs the namespace of the %ss; write namespace", c.Object.Kind)
	case c.Object == nil && c.Namespace != "":
		r.Fault(at.To("namespace"), "is not used, because the annotation is set on Nodes, which have no namespace; remove it")
	}
}

// ValueOf returns the annotation's value for a reboot. soft means a restart by the operating
// system.
func (c *Annotation) ValueOf(soft bool) string {
	if soft && c.Preset == Metal3 {
		return `{"mode":"soft"}`
	}
	return c.Value
}

// Warn implements section.Warner.
func (c *Annotation) Warn(at section.Pointer, say func(p section.Pointer, format string, args ...any)) {
	if c.Preset == Gardener {
		say(at.To("preset"), "no release of the machine-controller-manager up to 0.63 acts on %s, which is only proposed (gardener/machine-controller-manager issue 1106); with such a release nothing reboots, and each attempt ends after its wait", c.Key)
	}
}

// Serves implements section.Provider.
func (c *Annotation) Serves() remediations.Provider {
	p := remediations.Provider{Steps: []string{"reboot"}, NodeSelector: c.NodeSelector}
	if c.Preset == Metal3 {
		p.Scheme = "metal3://"
	}
	return p
}
