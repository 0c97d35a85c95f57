package intake

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Carrier finds the node that stores an alert whose target is not a node. key is the annotation key
// of the alert, name the target. node is "" if the target does not exist, or if no node hosts or
// leads it.
type Carrier func(ctx context.Context, key, name string) (node string, err error)

// OfLocations returns a Carrier for alerts about a mesh location. A Node that has this alert and
// the record of a location's repair comes first, even if it no longer leads the location. An
// exhausted repair does not count. Otherwise it is the node that leads the location now. repairing
// returns at least all Nodes with the record of a location's repair.
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

// OfPods finds the node that hosts the alert's pod now.
func OfPods(hosts func(ctx context.Context, pod remediations.Pod) (node string, err error)) Carrier {
	return func(ctx context.Context, _, name string) (string, error) {
		return hosts(ctx, remediations.PodNamed(name))
	}
}
