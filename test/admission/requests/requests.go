// Package requests is the one table of admission requests. The core's verdict, the webhook's answer
// and what the real API server says with only the ValidatingAdmissionPolicy are all held against
// it.
package requests

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
)

// Now is when every request is made, Node the Node that it is about.
var Now = time.Date(2026, 11, 20, 21, 2, 0, 0, time.UTC)

const Node = "n1"

// UID is the Node's, wherever it is not a real one.
const UID = "6f0c5d0e-41b2-4f7a-9d0a-2b7f3c1e8a55"

// User is who makes a request.
type User struct {
	Name   string
	Groups []string
}

var (
	Drydock   = User{"system:serviceaccount:drydock:drydock", []string{"system:serviceaccounts", "system:serviceaccounts:drydock"}}
	Person    = User{"jane", nil}
	Kubelet   = User{"system:node:" + Node, []string{"system:nodes"}}
	NodeUser  = User{"system:node:" + Node, nil}
	Manager   = User{"system:kube-controller-manager", nil}
	Cloud     = User{"system:cloud-controller-manager", nil}
	NodeCtl   = User{"system:serviceaccount:kube-system:node-controller", []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}}
	Cilium    = User{"system:serviceaccount:kube-system:cilium-operator", []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}}
	GPU       = User{"system:serviceaccount:gpu-operator:gpu-operator", []string{"system:serviceaccounts", "system:serviceaccounts:gpu-operator"}}
	Kilo      = User{"system:serviceaccount:kilo:kilo", []string{"system:serviceaccounts", "system:serviceaccounts:kilo"}}
	Karpenter = User{"system:serviceaccount:karpenter:karpenter", []string{"system:serviceaccounts", "system:serviceaccounts:karpenter"}}
	Machines  = User{"system:serviceaccount:openshift-machine-api:machine-api-controllers", []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-api"}}
	Driver    = User{"system:serviceaccount:nvidia-gpu-operator:nvidia-driver", []string{"system:serviceaccounts", "system:serviceaccounts:nvidia-gpu-operator"}}
	Autoscale = User{"system:serviceaccount:scaling:cluster-autoscaler", []string{"system:serviceaccounts", "system:serviceaccounts:scaling"}}
)

// Exempt is what the table's configuration exempts.
var Exempt = admission.Exemption{Users: []string{Autoscale.Name}, Groups: []string{"system:serviceaccounts:gpu-operator"}}

// ID is the id of the repair on the Node.
const ID = "n7q4k2"

// Config enforces: a policy that reboots, and one of the same step that only observes.
func Config(mode remediations.Mode) *remediations.Config {
	plan := []remediations.Step{{Name: "reboot", Wait: 10 * time.Minute, Attempts: 2}}
	return &remediations.Config{
		Mode: mode,
		Policies: []*remediations.Policy{
			{Name: "node-not-ready", Mode: mode, Plan: plan},
			{Name: "only-observes", Mode: remediations.ModeObserve, Plan: plan},
		},
		Limits:   remediations.Limits{Concurrent: remediations.Quantity{Value: 1}, ConcurrentPerZone: remediations.Quantity{Value: 1}, ConcurrentPerPool: remediations.Quantity{Value: 1}},
		Provided: map[string]bool{"reboot": true},
		Providers: []remediations.Provider{
			{Name: "karpenter", Steps: []string{"reboot", "replace"}, Users: []string{Karpenter.Name}},
			{Name: "external", Steps: []string{"external-replace"}, Users: []string{Machines.Name}},
		},
	}
}

// Bare is a Node without a repair.
func Bare() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: Node, UID: UID, Labels: map[string]string{corev1.LabelHostname: Node}, Annotations: map[string]string{"example.com/rack": "r1"}},
	}
}

// Record is a repair of the Node in that phase.
func Record(phase remediations.Phase) *remediations.Record {
	r := &remediations.Record{
		V: 1, ID: ID, Policy: "node-not-ready", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: phase,
		Step:  remediations.StepRef{Name: "reboot", Attempt: 1},
		Began: Now.Add(-3 * time.Minute), Since: Now.Add(-2 * time.Minute), Deadline: Now.Add(8 * time.Minute),
	}
	if phase != remediations.PhasePending {
		r.Intent = &remediations.Intent{ID: ID + "-0-1", At: Now.Add(-2 * time.Minute), Outcome: remediations.CallAccepted}
	}
	return r
}

// Location is whose leader LeaderRecord moves.
const Location = "east"

// LeaderRecord is a repair of the leader of Location in that phase: to goes before from, unless it
// is Pending and nothing is moved yet.
func LeaderRecord(from, to string, phase remediations.Phase) *remediations.Record {
	r, had := Record(phase), ""
	r.Policy, r.Step.Name, r.Location = "mesh-leader-degraded", "promote-leader", Location
	if r.Intent != nil {
		r.Intent.Successor, r.Done = to, remediations.Attempts{{Name: "promote-leader", Number: 1}}
		r.Moves = []remediations.Move{{Location: Location, From: from, To: to, Before: map[string]*string{from: &had, to: nil}}}
	}
	return r
}

// PutLeader writes a leader's record on the Node that led.
func PutLeader(n *corev1.Node, r *remediations.Record) {
	n.Annotations[remediations.LocationKey] = r.Encode()
	n.Labels[remediations.PhaseLabel] = string(r.Phase)
}

// Put writes a record on the Node as Drydock does, with its label.
func Put(n *corev1.Node, r *remediations.Record) {
	n.Annotations[remediations.NodeRepairKey] = r.Encode()
	n.Labels[remediations.PhaseLabel] = string(r.Phase)
}

// Case is one request and what is to become of it.
type Case struct {
	Name string
	// Before makes the Node what it is; nil: Bare.
	Before func(*corev1.Node)
	// Create: the Node is being made, and Change says as what. Without it, and with no Change, the
	// Node is deleted.
	Create bool
	Change func(*corev1.Node)
	// Status: the request goes to nodes/status.
	Status bool
	By     User
	// Unentitled: the user may change Nodes and has no verb on repairs.drydock.dev. Otherwise the
	// user has all of them.
	Unentitled bool

	// Reason is the verdict's; None without Denied and Warned.
	Reason         admission.Reason
	Denied, Warned bool
	// BreakGlass: only break-glass allows it.
	BreakGlass bool
	// Core: the denial is of the hard core, which the ValidatingAdmissionPolicy has, too.
	Core bool
}

// Nodes are the Node as it is and as it would be.
func (c *Case) Nodes() (before, after *corev1.Node) {
	before = Bare()
	if c.Before != nil {
		c.Before(before)
	}
	if c.Change != nil || c.Create {
		after = before.DeepCopy()
		if c.Change != nil {
			c.Change(after)
		}
	}
	if c.Create {
		before = nil
	}
	return before, after
}

// ChangeOf is the case as the core sees it.
func (c *Case) ChangeOf() *admission.Change {
	before, after := c.Nodes()
	return &admission.Change{
		Old: before, New: after, User: c.By.Name, Groups: c.By.Groups,
		Drydock: c.By.Name == Drydock.Name, Exempt: Exempt.Covers(c.By.Name, c.By.Groups), Driver: admission.ShippedDrivers().Covers(c.By.Name),
		May: func(string) (bool, error) { return !c.Unentitled, nil },
	}
}

// Normalize makes a Node fit for the API server: maps that are never nil, and no taint twice.
func Normalize(n *corev1.Node) {
	n.Annotations, n.Labels = maps.Clone(n.Annotations), maps.Clone(n.Labels)
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	seen, kept := sets.New[string](), []corev1.Taint(nil)
	for _, t := range n.Spec.Taints {
		if k := t.Key + string(t.Effect); !seen.Has(k) {
			seen.Insert(k)
			kept = append(kept, t)
		}
	}
	n.Spec.Taints = kept
}
