package remediations

import corev1 "k8s.io/api/core/v1"

// Leaving says what takes the node away or shuts it down; empty: nothing that is known.
func Leaving(n *corev1.Node) string {
	if f := nodeLeaving(&candidate{State: &State{Node: n}}); f != nil {
		return f.Message
	}
	return ""
}
