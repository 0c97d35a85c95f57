package engine

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// label has the change of a Node say the phase that its records say after it, where it changes one of those.
func label(n *corev1.Node, c *NodeChange) {
	occupying := false
	for key := range c.Annotations {
		occupying = occupying || remediations.OccupyingKey(key)
	}
	if !occupying {
		return
	}
	after := maps.Clone(n.Annotations)
	if after == nil {
		after = map[string]string{}
	}
	for k, v := range c.Annotations {
		if delete(after, k); v != nil {
			after[k] = *v
		}
	}
	if c.Labels == nil {
		c.Labels = map[string]*string{}
	}
	c.Labels[remediations.PhaseLabel] = nil
	if phase := string(remediations.LabelFor(after)); phase != "" {
		c.Labels[remediations.PhaseLabel] = &phase
	}
}
