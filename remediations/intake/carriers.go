package intake

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Carrier finds the node for an alert whose target is not a node: the alert is stored in that
// node's annotations. key is the annotation key of the alert, and name is the name of the target.
// Carrier returns an empty name if the target does not exist, or if no node hosts or leads it.
type Carrier func(ctx context.Context, key, name string) (node string, err error)

// OfLocations returns a Carrier for alerts about a mesh location. The Carrier first looks for a
// Node that has this alert and the record of a location's repair. It returns that Node, even if the
// Node no longer leads the location. An exhausted repair does not count. Otherwise the Carrier
// returns the node that leads the location now. repairing returns at least all Nodes with the
// record of a location's repair.
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
