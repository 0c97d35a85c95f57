package remediations

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// powerOff switches the machine off and leaves it off. When the provider confirms this, the
// out-of-service taint makes Kubernetes release the node's pods and volumes. The step cures no
// node, so its proof always fails, and the plan continues.
var powerOff = Remediation{
	Name: "powerOff", Verb: "switch off", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, PowersOff: true, Wait: 5 * time.Minute, Attempts: 1,
	Invasive: 9,
	Refuses: func(n *corev1.Node) string {
		if ControlPlane(n) {
			return "a control-plane node is never switched off for good, because etcd would lose a member"
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

// SwitchedOff returns the out-of-service taint that the repair set after it switched the machine
// off, or nil.
func (r *Record) SwitchedOff() *Undo {
	if r == nil {
		return nil
	}
	return switchedOff(r.Undo, func(u Undo) bool { return u.BootID != "" })
}

// SwitchedOff returns the out-of-service taint of any repair on the Node, or nil. The repair must
// have switched the machine off, and the machine must not have booted since.
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

// Due reports whether the change may be undone now. The out-of-service taint of a machine that was
// switched off stays until the machine has booted and its node is Ready.
func (u Undo) Due(n *corev1.Node) bool {
	boot := n.Status.NodeInfo.BootID
	return u.BootID == "" || (Ready(n) && boot != "" && boot != u.BootID)
}
