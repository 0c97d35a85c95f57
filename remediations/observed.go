package remediations

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Survey is a provider's answer about a machine before one of its steps acts on the machine.
type Survey struct {
	// Step is the Decision's AskStep, Provider the system that answered, and At the time of the
	// answer.
	Step     StepOn
	Provider string
	At       time.Time
	// Before is kept with the intent, for the proof.
	Before Before
	// Evidence is the host's last report about what the step restarts.
	Evidence string
	// Trouble is why the provider would refuse the step; empty: no reason is known. Fleetwide: it
	// applies to every machine.
	Trouble   string
	Fleetwide bool
	// Unreached: the provider gave no usable answer, so Trouble is not its refusal of the step. It
	// concerns this machine alone or, if Fleetwide, the whole provider. Then the provider has given
	// no answer since OutSince.
	Unreached bool
	OutSince  time.Time
	// Reason is the reason of Trouble that does not come from the provider: no step is passed over
	// for it. Empty: Trouble comes from the provider.
	Reason Reason
	// Again is how long to wait before the provider is asked again after Trouble.
	Again time.Duration
}

// Alone reports whether the provider cannot be asked about this machine, while nothing shows the
// same for other machines.
func (s *Survey) Alone() bool { return s.Unreached && !s.Fleetwide && s.Reason == "" }

// NodeFacts are the facts of a Node that a step's proof compares.
type NodeFacts struct{ BootID, UID, ProviderID string }

// RolePrefix begins the label and the taint of a node's role.
const RolePrefix = "node-role.kubernetes.io/"

// etcdRole marks a node with an etcd member, in distributions with separate roles (RKE, RKE2, K3s).
// Control-plane nodes of kubeadm have a member without this label.
const etcdRole = RolePrefix + "etcd"

// controlPlaneRoles are the labels of nodes that the control plane needs. RKE writes controlplane
// as one word.
var controlPlaneRoles = []string{
	RolePrefix + "control-plane", RolePrefix + "master", RolePrefix + "controlplane", etcdRole,
}

// ControlPlane reports whether the node has a role of the control plane. The etcd role alone is
// enough.
func ControlPlane(n *corev1.Node) bool {
	return slices.ContainsFunc(controlPlaneRoles, func(role string) bool {
		_, has := n.Labels[role]
		return has
	})
}

// Etcd reports whether the node has the role of etcd.
func Etcd(n *corev1.Node) bool {
	_, has := n.Labels[etcdRole]
	return has
}

// ReadyCondition returns the node's Ready condition. nil means that the node has none, which is
// missing data and not a fault.
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
