// Package requests has the one table of admission requests. Tests compare three results with it:
// the core's decision, the webhook's answer, and the answer of a real API server that has only the
// ValidatingAdmissionPolicy.
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

// Now is the time of every request. Node is the Node that every request is about.
var Now = time.Date(2026, 11, 20, 21, 2, 0, 0, time.UTC)

const Node = "n1"

// UID is the UID of the Node, unless the test has a real Node.
const UID = "6f0c5d0e-41b2-4f7a-9d0a-2b7f3c1e8a55"

// User is the user that makes a request.
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

// Exempt are the users and groups that the table's configuration exempts from admission.
var Exempt = admission.Exemption{Users: []string{Autoscale.Name}, Groups: []string{"system:serviceaccounts:gpu-operator"}}

// ID is the ID of the repair on the Node.
const ID = "n7q4k2"

// Config returns a configuration with two policies: one reboots in this mode, and one with the same
// step only observes.
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

// Bare returns a Node without a repair.
func Bare() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: Node, UID: UID, Labels: map[string]string{corev1.LabelHostname: Node}, Annotations: map[string]string{"example.com/rack": "r1"}},
	}
}

// Record returns the record of a repair of the Node in this phase.
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

// Location is the location whose leader LeaderRecord moves.
const Location = "east"

// LeaderRecord returns the record of a repair of Location's leader in this phase. Unless it is
// Pending, it has moved the leadership from one node to the other.
func LeaderRecord(from, to string, phase remediations.Phase) *remediations.Record {
	r, had := Record(phase), ""
	r.Policy, r.Step.Name, r.Location = "mesh-leader-degraded", "promote-leader", Location
	if r.Intent != nil {
		r.Intent.Successor, r.Done = to, remediations.Attempts{{Name: "promote-leader", Number: 1}}
		r.Moves = []remediations.Move{{Location: Location, From: from, To: to, Before: map[string]*string{from: &had, to: nil}}}
	}
	return r
}

// PutLeader writes a leader's record on the Node that led before.
func PutLeader(n *corev1.Node, r *remediations.Record) {
	n.Annotations[remediations.LocationKey] = r.Encode()
	n.Labels[remediations.PhaseLabel] = string(r.Phase)
}

// Put writes a record on the Node as Drydock does, together with the phase label.
func Put(n *corev1.Node, r *remediations.Record) {
	n.Annotations[remediations.NodeRepairKey] = r.Encode()
	n.Labels[remediations.PhaseLabel] = string(r.Phase)
}

// Case is one request, with its expected result.
type Case struct {
	Name string
	// Before changes the Node to its state before the request. Nil means Bare.
	Before func(*corev1.Node)
	// Create means that the request creates the Node, as Change leaves it. Otherwise a nil Change
	// means that the request deletes the Node.
	Create bool
	Change func(*corev1.Node)
	// Status means that the request goes to nodes/status.
	Status bool
	By     User
	// Unentitled means that the user may change Nodes, but has no verb on repairs.drydock.dev.
	// Otherwise the user has all of these verbs.
	Unentitled bool

	// Reason is None if neither Denied nor Warned is set.
	Reason         admission.Reason
	Denied, Warned bool
	// BreakGlass means that only break-glass allows the request.
	BreakGlass bool
	// Core means that the hard core denies the request, which the ValidatingAdmissionPolicy also
	// contains.
	Core bool
}

// Nodes returns the Node before the request and after it.
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

// ChangeOf returns the request in the form that the core of admission takes.
func (c *Case) ChangeOf() *admission.Change {
	before, after := c.Nodes()
	return &admission.Change{
		Old: before, New: after, User: c.By.Name, Groups: c.By.Groups,
		Drydock: c.By.Name == Drydock.Name, Exempt: Exempt.Covers(c.By.Name, c.By.Groups), Driver: admission.ShippedDrivers().Covers(c.By.Name),
		May: func(string) (bool, error) { return !c.Unentitled, nil },
	}
}

// Normalize makes a Node valid for the API server: without nil maps, and without the same taint
// twice.
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
