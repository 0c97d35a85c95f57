package remediations

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Survey is a provider's answer about a machine before a step on it.
type Survey struct {
	Step StepOn
	// Provider is the name of the provider that answered. At is the time of the answer.
	Provider string
	At       time.Time
	// Facts that the provider needs for its proof after the step.
	Before Before
	// The last lines of the host's log about the service that the step restarts.
	Evidence string
	// Why the provider would refuse the step, or gave no answer. Empty if nothing prevents the
	// step.
	Trouble string
	// Trouble concerns every machine of the provider.
	Fleetwide bool
	// The provider gave no usable answer, so Trouble is not a refusal.
	Unreached bool
	// When the provider began to give no answer about any machine. Set only if both Unreached and
	// Fleetwide are true.
	OutSince time.Time
	// Set if another system than the provider causes Trouble: the repair is then held for this
	// reason, and the plan does not continue with another step.
	Reason Reason
	// How long to wait until the provider is asked again.
	Again time.Duration
}

// Alone reports whether the provider gave no usable answer about this machine, and perhaps about
// this one only.
func (s *Survey) Alone() bool { return s.Unreached && !s.Fleetwide && s.Reason == "" }

// NodeFacts are the facts of a Node that a step's proof compares with the intent.
type NodeFacts struct{ BootID, UID, ProviderID string }

// RolePrefix is the prefix of the label and of the taint that show a node's role.
const RolePrefix = "node-role.kubernetes.io/"

// The label of a node with an etcd member in RKE, RKE2 and K3s, which have separate roles.
// kubeadm's control-plane nodes have an etcd member without it.
const etcdRole = RolePrefix + "etcd"

// RKE writes "controlplane" as one word.
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
