package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/remediations"
)

// repairIndex names the index of Nodes by their repairs, and these are its values.
const (
	repairIndex     = "repairs"
	inFlight        = "in flight"
	locationRepairs = "of a location"
)

// RepairIndex is for the Indexer of a Fleet. Look-ups that an outside sender can cause use the
// index, so their cost does not grow with the fleet.
func RepairIndex() cache.Indexers {
	return cache.Indexers{repairIndex: func(o any) (values []string, err error) {
		n, ok := o.(*corev1.Node)
		if !ok {
			return nil, fmt.Errorf("the cache of Nodes holds a %T", o)
		}
		flies := remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight()
		for k, v := range n.Annotations {
			flies = flies || strings.HasPrefix(k, remediations.RepairPrefix) && mayFly(v)
		}
		if flies {
			values = append(values, inFlight)
		}
		if _, ok := n.Annotations[remediations.LocationKey]; ok {
			values = append(values, locationRepairs)
		}
		return values, nil
	}}
}

// mayFly looks for the phase in the text of a record. To be certain, the record must be decoded.
func mayFly(record string) bool {
	return strings.Contains(record, string(remediations.PhaseActing)) || strings.Contains(record, string(remediations.PhaseVerifying))
}

// Repairing returns the Nodes that may have a repair in flight, according to a record of any kind
// or to the label.
func (f Fleet) Repairing() []*corev1.Node { return f.of(inFlight) }

// RepairingLocations returns the Nodes that have a record of a location's repair.
func (f Fleet) RepairingLocations() []*corev1.Node { return f.of(locationRepairs) }

func (f Fleet) of(value string) (nodes []*corev1.Node) {
	objs, err := f.Indexer.ByIndex(repairIndex, value)
	if err != nil { // without the index all Nodes are returned
		objs = f.Indexer.List()
	}
	for _, o := range objs {
		if n, ok := o.(*corev1.Node); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
