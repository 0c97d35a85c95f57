package remediations

import (
	"strings"
	"time"
)

// This file has the remediations that restart one program on one node, the least invasive first.
// The first two restart a pod of a DaemonSet, and the others a systemd unit.

// The DaemonSet creates the pod again.
var restartKubeProxy = Remediation{
	Name: "restart-kube-proxy", Verb: "restart the kube-proxy of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, AsksPods: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 1, Proof: succeeded,
}

// The network's (CNI) DaemonSet creates the pod again.
var restartCNI = Remediation{
	Name: "restart-cni", Verb: "restart the network pod of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, AsksPods: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 2, Proof: succeeded,
}

// On a control-plane node the static pods keep running.
var restartKubelet = Remediation{
	Name: "restart-kubelet", Verb: "restart the kubelet of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 3, Proof: restarted,
}

// Containers keep running.
var restartContainerd = Remediation{
	Name: "restart-containerd", Verb: "restart containerd of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 4, Proof: restarted,
}

var restartUnit = Remediation{
	Name: "restart-unit", Verb: "restart a unit of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 5, Proof: restarted,
}

// The outcome is "accepted" only if the host reported that systemd started the unit again (a new
// invocation).
func restarted(intent *Intent, _ *NodeFacts, _ Answers) (bool, string) {
	if intent.Outcome != CallAccepted {
		return false, "the host has not confirmed that the unit was restarted: " + intent.Why
	}
	return true, ""
}

func succeeded(_ *Intent, _ *NodeFacts, a Answers) (bool, string) {
	switch r := a.Pods; {
	case r == nil:
		return false, "Drydock has not yet checked whether the new pods exist and are Ready"
	case r.Missing != "":
		return false, r.Missing
	}
	return true, ""
}

// In bytes, without the "…" at the beginning of a cut text.
const maxEvidence = 1 << 10

// EvidenceOf returns the text for Record.Evidence: the last lines of a host's log, joined to one
// line.
func EvidenceOf(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	one := clip(strings.Join(lines, " | "), len(text)+3*len(lines))
	if len(one) > maxEvidence {
		one = "…" + strings.ToValidUTF8(one[len(one)-maxEvidence:], "")
	}
	return one
}
