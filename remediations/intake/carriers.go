package intake

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Carrier returns the node for the alert with that key, about the target of that name. It returns
// an empty name if there is no such target, or no node for it.
type Carrier func(ctx context.Context, key, name string) (node string, err error)

// OfLocations finds the node for an alert about a location. This is first a Node that has the alert
// and a repair of the location's leader under way; it may no longer be the leader. Otherwise it is
// the node that leads the location now. repairing returns at least the Nodes with such a repair.
func OfLocations(repairing func() []*corev1.Node, leads func(location string) (node string)) Carrier {
	return func(_ context.Context, key, location string) (string, error) {
		for _, n := range repairing() {
			if _, carries := n.Annotations[key]; !carries {
				continue
			}
			if r, err := remediations.DecodeRecord(n.Annotations[remediations.LocationKey]); err == nil && r.Phase != remediations.PhaseExhausted {
				return n.Name, nil
			}
		}
		return leads(location), nil
	}
}

// OfPods finds the node for an alert about a pod: the node that hosts the pod now.
func OfPods(hosts func(ctx context.Context, pod remediations.Pod) (node string, err error)) Carrier {
	return func(ctx context.Context, _, name string) (string, error) {
		return hosts(ctx, remediations.PodNamed(name))
	}
}
