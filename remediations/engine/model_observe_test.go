package engine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// These are the checks about policies that only observe.

// checkObserved: a repair that was only observed must have issued nothing, and must report what it
// would have issued.
func (w *world) checkObserved(cur *corev1.Node, e remediations.Entry) {
	was := modelRegistry.ReadJournal(cur).Record
	switch {
	case was == nil || was.ID != e.ID:
		w.fail("7: the repair %s was observed to its end, and %s carries no such record", e.ID, cur.Name)
	case was.Intent != nil || len(e.Steps) > 0:
		w.fail("1: the repair %s ends as Observed, and it issued %v", e.ID, was.Done)
	case e.Would == nil || e.Would.Step != was.Step.Issued():
		w.fail("1: the repair %s ends as Observed, and does not say that it would %s", e.ID, was.Step)
	case !e.Would.WellAt.IsZero() && !remediations.Ready(cur):
		w.fail("7: the repair %s says that %s got well, and it is not Ready", e.ID, cur.Name)
	}
}

// checkPlaceOf: a would-be repair must not keep its place for longer than its step would take.
func (w *world) checkPlaceOf(node string, slack time.Duration) {
	r := w.record(node)
	if r == nil || r.Intent != nil {
		return
	}
	p := w.config.PolicyOf(r.Policy, w.nodes[node])
	if until := w.config.WouldUntil(p, r); !until.IsZero() && time.Since(until) > slack {
		w.fail("liveness: the would-be repair of %s keeps its place since %s", node, r.Hold.Since)
	}
}

// observedAndFreed: a new fault of n5 is observed. Its place is free when the step's wait has
// ended, although the fault stays. Once the policy enforces, the observed repair holds nothing.
func (w *world) observedAndFreed(p *remediations.Policy) bool {
	observed := func() bool {
		history := modelRegistry.ReadJournal(w.nodes["n5"]).History
		return w.record("n5") == nil && slices.ContainsFunc(history, func(e remediations.Entry) bool {
			return e.Policy == p.Name && e.Outcome == remediations.OutcomeObserved
		})
	}
	if !w.until(40*time.Minute, observed) {
		w.do(func() {
			w.fail("liveness: the would-be repair of n5 keeps its place: %v; holds %v", w.record("n5"), mustLedger(w).Status.Holds)
		})
		return false
	}
	enforcing, q := *w.config, *p
	q.Mode = remediations.ModeEnforce
	enforcing.Policies = append([]*remediations.Policy{&q}, w.config.Policies[1:]...)
	w.restart(&enforcing)
	return true
}
