package remediations

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldOwners returns the entries of the Node's managedFields that own the field at the path, such as "f:spec", "f:unschedulable".
func FieldOwners(n *corev1.Node, path ...string) ([]metav1.ManagedFieldsEntry, error) {
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

// OwnsCordon says whether Drydock is an owner of the Node's spec.unschedulable.
func OwnsCordon(n *corev1.Node) (bool, error) {
	owners, err := FieldOwners(n, "f:spec", "f:unschedulable")
	for _, o := range owners {
		if o.Manager == FieldManager {
			return true, nil
		}
	}
	return false, err
}

// Set says whether the taint is the one that Drydock set and recorded. Its time alone tells: managedFields cannot say who set a
// taint, because all taints are one field to them. Only whoever sets a taint gives it a time, and kubectl gives none. Whole
// seconds are compared, because the API server keeps no more.
func (u Undo) Set(t corev1.Taint) bool {
	return u.Kind == UndoTaint && t.Key == u.Key && t.TimeAdded != nil && t.TimeAdded.Unix() == u.At.Unix()
}
