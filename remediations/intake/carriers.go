package intake

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Carrier returns the node whose annotations hold an alert about a target that is not a node: key
// is the alert's annotation key, name is the target's name. The node is empty if the target does
// not exist or no node has it.
type Carrier func(ctx context.Context, key, name string) (node string, err error)

// OfLocations returns a Carrier for alerts about a mesh location. It first looks for a Node that
// has this alert and the record of a location's repair. That Node may have lost the leadership
// since, and an exhausted repair does not count. Otherwise it returns the node that leads the
// location now. repairing returns at least all Nodes with such a repair.
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
