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
	// All remediators and their clients use these names in the same way.
	nodeKey     = "remediation.medik8s.io/node-name"
	templateKey = "remediation.medik8s.io/template-name"
	timedOutKey = "remediation.medik8s.io/nhc-timed-out"
	excludeKey  = "remediation.medik8s.io/exclude-from-remediation"
	// rebootableKey is set on the Node by the agent of SelfNodeRemediation there. The agent reboots
	// the Node only if the value is "true".
	rebootableKey = "is-reboot-capable.self-node-remediation.medik8s.io"

	// attemptKey and madeLabel are on each object that Drydock makes, and it lists its objects by
	// the label.
	attemptKey = remediations.AttemptKey
	madeLabel  = "app.kubernetes.io/managed-by"
	madeBy     = "drydock"

	selfNode = "SelfNodeRemediation"
	metal3   = "Metal3Remediation"
)

// All known remediators name their kinds and URLs in these forms.
func kindOf(t remediations.Template) string { return strings.TrimSuffix(t.Kind, "Template") }

func plural(kind string) string { return strings.ToLower(kind) + "s" }

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

// about returns the Node's name by the rule of remediators: the annotation nodeKey, or else the
// object's name.
func (o *object) about() string {
	if node := o.Annotations[nodeKey]; node != "" {
		return node
	}
	return o.Name
}

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
