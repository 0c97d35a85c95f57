package remediations

import (
	"strings"
	"time"
)

// The restarts, from the least invasive on: first the node's own pod of a DaemonSet, then a unit on
// its host. They change no other node.

// restartKubeProxy deletes the node's own pod of kube-proxy's DaemonSet, which routes Services.
var restartKubeProxy = Remediation{
	Name: "restart-kube-proxy", Verb: "restart the kube-proxy of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, AsksPods: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 1, Proof: succeeded,
}

// restartCNI deletes the node's own pod of the DaemonSet that connects pods to the network.
var restartCNI = Remediation{
	Name: "restart-cni", Verb: "restart the network pod of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, AsksPods: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 2, Proof: succeeded,
}

// restartKubelet restarts the kubelet's unit on the host. On a control-plane node the static pods
// keep running.
var restartKubelet = Remediation{
	Name: "restart-kubelet", Verb: "restart the kubelet of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 3, Proof: restarted,
}

// restartContainerd restarts the container runtime's unit on the host. Containers keep running.
var restartContainerd = Remediation{
	Name: "restart-containerd", Verb: "restart containerd of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 4, Proof: restarted,
}

// restartUnit restarts a unit that the configuration names.
var restartUnit = Remediation{
	Name: "restart-unit", Verb: "restart a unit of", Disruptive: true, Once: true, LooksFirst: true, PassedOver: true,
	RenewsLease: true, Wait: 3 * time.Minute, Attempts: 1, Invasive: 5, Proof: restarted,
}

// restarted proves a restart on the host. The call's outcome is accepted only if the host itself
// reported that the unit runs under another invocation.
func restarted(intent *Intent, _ *NodeFacts, _ Answers) (bool, string) {
	if intent.Outcome != CallAccepted {
		return false, "the host never said that the unit started again: " + intent.Why
	}
	return true, ""
}

// succeeded proves a step that works through pods: the new pods exist and are Ready.
func succeeded(_ *Intent, _ *NodeFacts, a Answers) (bool, string) {
	switch r := a.Pods; {
	case r == nil:
		return false, "Drydock has not yet checked whether the new pods are there"
	case r.Missing != "":
		return false, r.Missing
	}
	return true, ""
}

// maxEvidence bounds what a repair keeps of a host's last report.
const maxEvidence = 1 << 10

// EvidenceOf returns what is kept of a host's last report: its end, on one line.
func EvidenceOf(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	one := clip(strings.Join(lines, " | "), len(text)+3*len(lines))
	if len(one) > maxEvidence {
		one = "…" + strings.ToValidUTF8(one[len(one)-maxEvidence:], "")
	}
	return one
}
