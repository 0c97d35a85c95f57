package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/remediations"
)

// The cache's index that finds Nodes by their repairs, and the values in it.
const (
	repairIndex     = "repairs"
	inFlight        = "in flight"
	locationRepairs = "of a location"
)

// RepairIndex returns the index for Fleet.Indexer. Requests from outside can cause look-ups of
// repairs; with it, their cost does not grow with the number of Nodes.
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

// Only the decoded record shows with certainty whether the repair is in flight.
func mayFly(record string) bool {
	return strings.Contains(record, string(remediations.PhaseActing)) || strings.Contains(record, string(remediations.PhaseVerifying))
}

// Repairing returns the Nodes that may have a repair in flight, by their records or phase label.
func (f Fleet) Repairing() []*corev1.Node { return f.of(inFlight) }

// RepairingLocations returns the Nodes that have the record of a mesh location's repair.
func (f Fleet) RepairingLocations() []*corev1.Node { return f.of(locationRepairs) }

func (f Fleet) of(value string) (nodes []*corev1.Node) {
	objs, err := f.Indexer.ByIndex(repairIndex, value)
	if err != nil { // if the index is missing, all Nodes are returned
		objs = f.Indexer.List()
	}
	for _, o := range objs {
		if n, ok := o.(*corev1.Node); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
