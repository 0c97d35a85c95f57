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
	// Annotations and a label of the contract between remediators and their clients.
	nodeKey     = "remediation.medik8s.io/node-name"
	templateKey = "remediation.medik8s.io/template-name"
	timedOutKey = "remediation.medik8s.io/nhc-timed-out"
	excludeKey  = "remediation.medik8s.io/exclude-from-remediation"
	// rebootableKey is the annotation that SelfNodeRemediation's agent sets on its Node. If it is
	// not "true", the agent never reboots the Node.
	rebootableKey = "is-reboot-capable.self-node-remediation.medik8s.io"

	// attemptKey is the annotation with Drydock's attempt that made the object. madeLabel is on all
	// objects of Drydock, to find them.
	attemptKey = remediations.AttemptKey
	madeLabel  = "app.kubernetes.io/managed-by"
	madeBy     = "drydock"

	selfNode = "SelfNodeRemediation"
	metal3   = "Metal3Remediation"
)

// kindOf returns the kind of the objects that are made from the template. plural returns a kind's
// form in a URL's path. All known remediators use these forms.
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

// about returns the name of the object's Node, by the rule of remediators: the annotation, or else
// the object's name.
func (o *object) about() string {
	if node := o.Annotations[nodeKey]; node != "" {
		return node
	}
	return o.Name
}

// specOf returns the spec that the template has for its objects.
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
