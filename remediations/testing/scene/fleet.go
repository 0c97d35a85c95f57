package scene

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
)

// Herd returns count nodes. The first bad of them are not Ready. They get the zones in turn.
func Herd(count, bad int, zones ...string) []*corev1.Node {
	var out []*corev1.Node
	for i := range count {
		n := Bare(fmt.Sprintf("n%03d", i))
		if len(zones) > 0 {
			n.Labels["zone"] = zones[i%len(zones)]
		}
		if i < bad {
			Unready(n)
		}
		out = append(out, n)
	}
	return out
}

// FleetOf returns the fleet of these Nodes. A nil ledger is empty.
func FleetOf(c *remediations.Config, nodes []*corev1.Node, l *ledger.Ledger, now time.Time) *fleet.Fleet {
	if l == nil {
		l = &ledger.Ledger{}
	}
	return fleet.New(c, nodes, l, Quiet, now)
}

// ControlPlane makes the first count nodes control-plane nodes.
func ControlPlane(nodes []*corev1.Node, count int) []*corev1.Node {
	for _, n := range nodes[:count] {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
	}
	return nodes
}

// InPhase sets the phase in the node's record, and the phase label.
func InPhase(n *corev1.Node, p remediations.Phase) {
	r := remediations.ReadJournal(n).Record
	r.Phase, n.Labels[remediations.PhaseLabel] = p, string(p)
	n.Annotations[remediations.NodeRepairKey] = r.Encode()
}
