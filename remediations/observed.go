package remediations

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Survey is what a provider says of a machine that one of its steps would act on.
type Survey struct {
	// Step is the Decision's AskStep, Provider who was asked, At when the answer came.
	Step     StepOn
	Provider string
	At       time.Time
	// Before is kept with the intent, for the proof.
	Before Before
	// Evidence is what the host last said of what is to be restarted.
	Evidence string
	// Trouble is why the step could only be refused; empty: nothing is known against it. Fleetwide: whichever machine.
	Trouble   string
	Fleetwide bool
	// Unreached: the other side gave no usable answer, so trouble is not its word about the step. It is that of this one machine or, if
	// Fleetwide, the whole provider, which then has given none since OutSince.
	Unreached bool
	OutSince  time.Time
	// Reason is that of trouble which is not the provider's, so that no step is passed over for it; empty: it is the provider's.
	Reason Reason
	// Again is how long to wait before asking again after trouble.
	Again time.Duration
}

// Alone says that the provider cannot be asked about this machine, and that nothing shows the same of other machines.
func (s *Survey) Alone() bool { return s.Unreached && !s.Fleetwide && s.Reason == "" }

// NodeFacts is what a step's proof is judged by.
type NodeFacts struct{ BootID, UID, ProviderID string }

// RolePrefix is how the label and the taint of a node's role begin.
const RolePrefix = "node-role.kubernetes.io/"

// etcdRole marks a node that runs a member of etcd, where roles are split (RKE, RKE2, K3s). Control-plane nodes of kubeadm have a
// member without it.
const etcdRole = RolePrefix + "etcd"

// controlPlaneRoles are the labels of nodes that the control plane needs. RKE writes controlplane in one word.
var controlPlaneRoles = []string{
	RolePrefix + "control-plane", RolePrefix + "master", RolePrefix + "controlplane", etcdRole,
}

// ControlPlane says whether the node has a role of the control plane. The role of etcd alone is one.
func ControlPlane(n *corev1.Node) bool {
	return slices.ContainsFunc(controlPlaneRoles, func(role string) bool {
		_, has := n.Labels[role]
		return has
	})
}

// Etcd says whether the node has the role of etcd.
func Etcd(n *corev1.Node) bool {
	_, has := n.Labels[etcdRole]
	return has
}

// ReadyCondition returns the node's Ready condition; nil: the node has none, which is no data and not a fault.
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
