package remediations

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// powerOff switches the machine off through its provider, and leaves it off. It cures no node. When
// the provider has confirmed that the machine is off, the node is marked out of service, so that
// Kubernetes releases its pods and volumes. Then the plan continues.
var powerOff = Remediation{
	Name: "powerOff", Verb: "switch off", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, PowersOff: true, Wait: 5 * time.Minute, Attempts: 1,
	Invasive: 9,
	Refuses: func(n *corev1.Node) string {
		if ControlPlane(n) {
			return "a control-plane node is never switched off for good: the others would be left with its etcd member missing"
		}
		return ""
	},
	Proof: func(_ *Intent, _ *NodeFacts, a Answers) (bool, string) {
		switch r := a.Machine; {
		case r == nil:
			return false, "the provider has not been asked yet whether the machine is off"
		case !r.MachineGone:
			return false, r.Missing
		}
		return false, "the machine is off, which cures no node"
	},
}

// SwitchedOff returns the mark of a machine that the repair has switched off; nil: there is none.
func (r *Record) SwitchedOff() *Undo {
	if r == nil {
		return nil
	}
	return switchedOff(r.Undo, func(u Undo) bool { return u.BootID != "" })
}

// SwitchedOff returns the mark of the Node's machine, if a repair has switched it off and it has
// not booted since; nil: there is none.
func (j Journal) SwitchedOff(n *corev1.Node) *Undo {
	boot := n.Status.NodeInfo.BootID
	return switchedOff(j.ToUndo(), func(u Undo) bool { return boot != "" && u.BootID == boot })
}

func switchedOff(undo []Undo, of func(Undo) bool) *Undo {
	if i := slices.IndexFunc(undo, func(u Undo) bool { return u.Kind == UndoTaint && of(u) }); i >= 0 {
		return &undo[i]
	}
	return nil
}

// Due reports whether the change may be undone on the Node now. The mark of a machine that was
// switched off stays until the machine has booted again and its node is Ready.
func (u Undo) Due(n *corev1.Node) bool {
	boot := n.Status.NodeInfo.BootID
	return u.BootID == "" || (Ready(n) && boot != "" && boot != u.BootID)
}
