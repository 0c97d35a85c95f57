package remediations

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Survey is a provider's answer about a machine before a step on it.
type Survey struct {
	// Step is the step that the provider was asked about.
	Step StepOn
	// Provider is the name of the provider that answered. At is the time of the answer.
	Provider string
	At       time.Time
	// Before has facts that the provider needs for its proof after the step. It is stored with the
	// intent.
	Before Before
	// Evidence has the last lines of the host's log about the service that the step restarts.
	Evidence string
	// Trouble is why the provider would refuse the step, or why it gave no answer. It is empty if
	// nothing prevents the step.
	Trouble string
	// Fleetwide reports that Trouble concerns every machine of the provider.
	Fleetwide bool
	// Unreached reports that the provider gave no usable answer, so that Trouble is not a refusal.
	Unreached bool
	// OutSince is when the provider began to give no answer about any machine. It is set only if both
	// Unreached and Fleetwide are true.
	OutSince time.Time
	// Reason is set if another system than the provider causes Trouble. It is then the reason of
	// the hold: the repair waits, and the plan does not continue with another step. Reason is empty
	// if the provider causes Trouble.
	Reason Reason
	// Again is how long to wait after Trouble before the provider is asked again.
	Again time.Duration
}

// Alone reports whether the provider gave no usable answer about this machine, and this problem is
// not known to concern all of the provider's machines.
func (s *Survey) Alone() bool { return s.Unreached && !s.Fleetwide && s.Reason == "" }

// NodeFacts are the facts of a Node that a step's proof compares with the intent.
type NodeFacts struct{ BootID, UID, ProviderID string }

// RolePrefix is the prefix of the label and of the taint that show a node's role.
const RolePrefix = "node-role.kubernetes.io/"

// etcdRole is the label of a node with an etcd member, in distributions that have separate roles
// (RKE, RKE2, K3s). Control-plane nodes of kubeadm have an etcd member without this label.
const etcdRole = RolePrefix + "etcd"

// controlPlaneRoles are the labels of control-plane nodes and of etcd nodes. RKE writes
// "controlplane" as one word.
var controlPlaneRoles = []string{
	RolePrefix + "control-plane", RolePrefix + "master", RolePrefix + "controlplane", etcdRole,
}

// ControlPlane reports whether the node has a role of the control plane. The role etcd also counts.
func ControlPlane(n *corev1.Node) bool {
	return slices.ContainsFunc(controlPlaneRoles, func(role string) bool {
		_, has := n.Labels[role]
		return has
	})
}

// Etcd reports whether the node has the role etcd.
func Etcd(n *corev1.Node) bool {
	_, has := n.Labels[etcdRole]
	return has
}

// ReadyCondition returns the node's Ready condition, or nil if the node has none. Nil means missing
// data, not a fault.
func ReadyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func Ready(n *corev1.Node) bool {
	r := ReadyCondition(n)
	return r != nil && r.Status == corev1.ConditionTrue
}
