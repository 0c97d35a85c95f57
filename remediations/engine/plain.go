package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Targets looks at the targets of one kind that needs no more than a look and a call, and repairs them.
type Targets interface {
	// Carrier says which node has the target of that name; empty: none has, or there is no such target.
	Carrier(ctx context.Context, name string) (node string, err error)
	// Observe looks at the target. It does not fail: what it could not find out is in the answer. It changes nothing.
	Observe(ctx context.Context, node, name string) lifecycle.Observation
	// Act looks once more, asks mayStill at the very last moment, and makes the call. The outcome is never empty; the error says why
	// it is not accepted.
	Act(ctx context.Context, t Target, mayStill func() error) (remediations.CallOutcome, error)
}

// Target is what a call is about.
type Target struct {
	Node, Name, UID string
	// Attempt is the intent's id, Step the plan's.
	Attempt string
	Step    remediations.Step
}

// plain is the kind whose targets the port looks at and repairs.
func plain(of remediations.Kind, port Targets) *kind {
	return &kind{
		of: of,
		carrier: func(e *Engine, ctx context.Context) func(fingerprint, name string) string {
			return func(_, name string) string {
				ctx, cancel := context.WithTimeout(ctx, lastLook)
				defer cancel()
				node, err := port.Carrier(ctx, name)
				if err != nil {
					e.Log.Error(err, "which node has a target cannot be read; its alert waits for the next poll", "kind", of, "target", name)
				}
				return node
			}
		},
		decide: func(e *Engine, t *subject, now time.Time) lifecycle.Decision {
			seen, _ := t.m.seen.(*lifecycle.Observation)
			return e.core.decidePlain(&lifecycle.PlainState{Target: lifecycle.Target{State: t.State, Subject: t.Subject, Kind: of}, Seen: seen}, now)
		},
		look: func(_ *pass, t *subject, _ lifecycle.Decision) func(context.Context, time.Time) any {
			return func(ctx context.Context, began time.Time) any {
				o := port.Observe(ctx, t.of.node, t.of.name)
				o.At = began
				return &o
			}
		},
		call: func(p *pass, t *subject, d lifecycle.Decision) string {
			r := d.Record
			key, target := t.Key, Target{Node: t.of.node, Name: t.of.name, UID: r.Intent.UID, Attempt: r.Intent.ID, Step: d.Policy.Plan[r.Step.Index]}
			p.send(calling{
				of: t.of, step: r.Step.Name, attempt: target.Attempt, trail: trailOf(r),
				lets: func(_ context.Context, live *corev1.Node) error {
					return p.core.mayStillRepair(p.Config, live, key, target.Attempt)
				},
				act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
					return port.Act(ctx, target, mayStill)
				},
			}, &t.m.repairMemory)
			return target.Attempt
		},
		ofWhat: func(*remediations.Entry) string { return " of a " + string(of) },
	}
}
