package external

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
)

const (
	// Those of the contract of external remediations.
	nodeKey     = "remediation.medik8s.io/node-name"
	templateKey = "remediation.medik8s.io/template-name"
	timedOutKey = "remediation.medik8s.io/nhc-timed-out"
	excludeKey  = "remediation.medik8s.io/exclude-from-remediation"
	// rebootableKey is what SelfNodeRemediation's agent says of its Node. Without "true" it never reboots it.
	rebootableKey = "is-reboot-capable.self-node-remediation.medik8s.io"

	// attemptKey is the attempt of Drydock's that made the object, and madeLabel finds all of these.
	attemptKey = "drydock.dev/attempt"
	madeLabel  = "app.kubernetes.io/managed-by"
	madeBy     = "drydock"

	selfNode = "SelfNodeRemediation"
	metal3   = "Metal3Remediation"
)

// kindOf is the kind of the objects that are made of the template, and plural how it stands in a path. It is that of all remediators
// that are known.
func kindOf(t remediations.Template) string { return strings.TrimSuffix(t.Kind, "Template") }

func plural(kind string) string { return strings.ToLower(kind) + "s" }

// object is a remediation object, or a template.
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

func (o *object) name() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// about is the Node that the object is about, as its remediator takes it.
func (o *object) about() string {
	if node := o.Annotations[nodeKey]; node != "" {
		return node
	}
	return o.Name
}

// specOf is what the template has for its objects.
func specOf(template *object) (json.RawMessage, error) {
	var spec struct {
		Template struct {
			Spec json.RawMessage `json:"spec"`
		} `json:"template"`
	}
	if err := json.Unmarshal(template.Spec, &spec); err != nil || len(spec.Template.Spec) == 0 || spec.Template.Spec[0] != '{' {
		return nil, fmt.Errorf("%s has no spec.template.spec", template.name())
	}
	return spec.Template.Spec, nil
}
