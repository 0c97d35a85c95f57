// Package owners finds out which field managers own a field of a Node, from its managedFields.
package owners

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
)

// Of returns the entries of the Node's managedFields that own the field, for example "f:spec",
// "f:unschedulable".
func Of(n *corev1.Node, path ...string) ([]metav1.ManagedFieldsEntry, error) {
	var out []metav1.ManagedFieldsEntry
	for _, entry := range n.ManagedFields {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("reading managedFields of Node %s: %w", n.Name, err)
		}
		owned := true
		for _, step := range path {
			below, found := fields[step]
			owned = owned && found
			fields, _ = below.(map[string]any)
		}
		if owned {
			out = append(out, entry)
		}
	}
	return out, nil
}

// Cordon reports whether Drydock is one of the owners of the Node's spec.unschedulable.
func Cordon(n *corev1.Node) (bool, error) {
	owners, err := Of(n, "f:spec", "f:unschedulable")
	for _, o := range owners {
		if o.Manager == remediations.FieldManager {
			return true, nil
		}
	}
	return false, err
}

// Annotation reports whether Drydock is the only owner of the Node's annotation. One that another
// client has set as well must not be removed.
func Annotation(n *corev1.Node, key string) (bool, error) {
	owners, err := Of(n, "f:metadata", "f:annotations", "f:"+key)
	for _, o := range owners {
		if o.Manager != remediations.FieldManager {
			return false, err
		}
	}
	return len(owners) > 0, err
}
