package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Approval is what a sidecar is approved by.
type Approval struct {
	Provider string
	// Pod has the UID for which the decision was made, Node hosts it. Task is the id of the sidecar's task.
	Pod  remediations.Pod
	Node string
	Task string
}

// Sidecars looks at the gated sidecars of pods, and approves them.
type Sidecars interface {
	// Hosts says which node hosts the pod; empty: none does, or there is no such pod.
	Hosts(ctx context.Context, p remediations.Pod) (node string, err error)
	// Look reads the pod, its owner, and how the sidecar says that it is. It does not fail: what it could not find out is
	// in the answer. It changes nothing.
	Look(ctx context.Context, provider string, p remediations.Pod) remediations.Sighting
	// Approve looks once more, asks mayStill at the very last moment, and approves. The outcome is never empty; the error
	// says why it is not accepted.
	Approve(ctx context.Context, a Approval, mayStill func() error) (remediations.CallOutcome, error)
}

// sidecarsNamed bounds the exhausted sidecars that the ledger names.
const sidecarsNamed = 20

// sidecars are those of the node's pods.
var sidecars = kind{
	of: remediations.KindSidecar, sinceSeen: true,
	carrier: (*Engine).hosts,
	decide: func(e *Engine, t *subject, now time.Time) remediations.Decision {
		busy := e.busySidecars
		if e.Config.SidecarTakesPlace(t.Record, e.sidecarsCounted) {
			busy--
		}
		seen, _ := t.m.seen.(*remediations.Sighting)
		return e.core.decideSidecar(&remediations.SidecarState{State: t.State, Subject: t.Subject, Sighting: seen, Busy: busy, NewTask: e.NewTask()}, now)
	},
	look: (*passing).lookAtSidecar, saw: (*passing).transition,
	call: (*passing).approve,
	about: func(t *subject) *remediations.Object {
		pod := remediations.PodNamed(t.Name)
		o := &remediations.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
		seen, _ := t.m.seen.(*remediations.Sighting)
		switch {
		case seen != nil && seen.Pod.UID != "":
			o.UID = seen.Pod.UID
		case t.Record != nil:
			o.UID = t.Record.Pod.UID
		}
		return o
	},
	// It waits for nothing, whatever its alert still says.
	quiet: func(t *subject) bool {
		seen, _ := t.m.seen.(*remediations.Sighting)
		return t.Record == nil && seen != nil && seen.Health == remediations.HealthReady
	},
	counted: (*passing).countSidecar,
}

// approve lets the approval go out.
func (p *passing) approve(t *subject, d remediations.Decision) string {
	r := d.Record
	intent, key := *r.Intent, t.Key
	a := Approval{Provider: d.Policy.Plan[r.Step.Index].Provider, Pod: *r.Pod, Node: t.of.node, Task: intent.Task}
	p.send(calling{
		of: t.of, step: r.Step.Name, attempt: intent.ID,
		about: []any{"pod", r.Pod.String(), "task", intent.Task},
		lets:  func(_ context.Context, live *corev1.Node) error { return p.core.mayStillRepair(live, key, intent.ID) },
		act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
			return p.Sidecars.Approve(ctx, a, mayStill)
		},
	}, &t.m.repairMemory)
	return intent.ID
}

// countSidecar counts those that take a place, and names those that a person must look at.
func (p *passing) countSidecar(t *subject, r *remediations.Record, d remediations.Decision, wrote bool) {
	switch {
	case !wrote:
	case d.Verb == remediations.Issue:
		p.busySidecars++
	case p.Config.SidecarTakesPlace(t.Record, p.sidecarsCounted) && (d.Record == nil || !d.Record.Phase.InFlight()):
		p.busySidecars--
	}
	if r != nil && r.Phase == remediations.Exhausted && len(p.tally.sidecars) < sidecarsNamed {
		p.tally.sidecars[t.Name] = t.of.node
	}
}
