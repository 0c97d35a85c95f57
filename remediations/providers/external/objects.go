package external

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

const (
	// Annotations and a label that all remediators and their clients use in the same way.
	nodeKey     = "remediation.medik8s.io/node-name"
	templateKey = "remediation.medik8s.io/template-name"
	timedOutKey = "remediation.medik8s.io/nhc-timed-out"
	excludeKey  = "remediation.medik8s.io/exclude-from-remediation"
	// rebootableKey is an annotation on the Node, set by the agent of SelfNodeRemediation on that
	// node. The agent reboots the Node only if the value is "true".
	rebootableKey = "is-reboot-capable.self-node-remediation.medik8s.io"

	// attemptKey is the annotation with the ID of Drydock's attempt. madeLabel is a label with the
	// value madeBy. Both are on each object that Drydock makes, and Drydock finds its objects by
	// the label.
	attemptKey = remediations.AttemptKey
	madeLabel  = "app.kubernetes.io/managed-by"
	madeBy     = "drydock"

	selfNode = "SelfNodeRemediation"
	metal3   = "Metal3Remediation"
)

// kindOf returns the kind of the objects that are made from the template: the template's kind
// without "Template". plural returns the kind as it is in a URL's path. All known remediators use
// these forms.
func kindOf(t remediations.Template) string { return strings.TrimSuffix(t.Kind, "Template") }

func plural(kind string) string { return strings.ToLower(kind) + "s" }

// object has the fields of a remediation object, or of a template, that Drydock reads or writes.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage `json:"spec,omitempty"`
	Status            status          `json:"status,omitzero"`
}

type status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Phase      string             `json:"phase,omitempty"`
}

// about returns the name of the Node that the object is for. By the rule of remediators, this is
// the value of the annotation nodeKey, or the object's name if there is no annotation.
func (o *object) about() string {
	if node := o.Annotations[nodeKey]; node != "" {
		return node
	}
	return o.Name
}

// specOf returns the spec for objects that are made from the template: spec.template.spec.
func specOf(template *object) (json.RawMessage, error) {
	var spec struct {
		Template struct {
			Spec json.RawMessage `json:"spec"`
		} `json:"template"`
	}
	if err := json.Unmarshal(template.Spec, &spec); err != nil || len(spec.Template.Spec) == 0 || spec.Template.Spec[0] != '{' {
		return nil, fmt.Errorf("%s has no spec.template.spec", kubeapi.Name(template))
	}
	return spec.Template.Spec, nil
}
