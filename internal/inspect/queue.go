package inspect

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
)

const nodeTarget = "node"

// Queue has the repairs in progress and the waiting repairs, in Drydock's order of processing.
type Queue struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Leader     Leadership `json:"leader"`
	// Waiting are the repairs that have not begun or cannot continue, and the alerts that wait for
	// one.
	UnderWay      []Place `json:"underWay"`
	Waiting       []Place `json:"waiting"`
	LedgerProblem string  `json:"ledgerProblem,omitempty"`
}

// Place is one entry of the queue: a repair, or an alert that waits for a repair.
type Place struct {
	Node   string `json:"node"`
	Target string `json:"target"`
	Repair string `json:"repair,omitempty"`
	Policy string `json:"policy"`
	// Step is the running step or the next one. It is empty if Drydock has not decided yet.
	Step  string `json:"step,omitempty"`
	Phase string `json:"phase"`
	// Since is when the fault began, as far as the Node shows. Deadline is when a running attempt
	// times out.
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline,omitempty"`
	Hold     *Hold      `json:"hold,omitempty"`
	Change   string     `json:"change,omitempty"`
}

// Queue reads the repairs in progress and the waiting repairs.
func (r *Reader) Queue(ctx context.Context) (*Queue, error) {
	var turns []fleet.Turn
	err := r.each(ctx, Scope{}, func(n *corev1.Node) {
		if concerns(n) {
			n = n.DeepCopy()
			since, fires := firingSince(n)
			turns = append(turns, fleet.TurnOf(n, since, fires))
		}
	})
	if err != nil {
		return nil, err
	}
	l, err := r.ReadLedger(ctx)
	if err != nil {
		return nil, err
	}
	q := &Queue{APIVersion: APIVersion, Kind: "Queue", UnderWay: []Place{}, Waiting: []Place{}, LedgerProblem: l.Problem}
	if q.Leader, err = r.ReadLeader(ctx, l.Namespace, r.Lease); err != nil {
		return nil, err
	}
	now := r.Now()
	for _, n := range fleet.InTurn(turns) {
		for _, p := range placesOf(n, &l, now) {
			if remediations.Phase(p.Phase).InFlight() {
				q.UnderWay = append(q.UnderWay, p)
			} else {
				q.Waiting = append(q.Waiting, p)
			}
		}
	}
	return q, nil
}

// firingSince counts only alerts that a policy matches. fires is false if there are none.
func firingSince(n *corev1.Node) (since time.Time, fires bool) {
	for _, a := range firing(n) {
		if !fires || a.StartsAt.Before(since) {
			since, fires = a.StartsAt, true
		}
	}
	return since, fires
}

// placesOf returns one entry for each repair, also for an exhausted one. If the node itself has no
// repair, a firing alert gets an entry, too.
func placesOf(n *corev1.Node, l *Ledger, now time.Time) (out []Place) {
	since, fires := firingSince(n)
	s := &Observation{Node: n, Ledger: *l, Now: now}
	var taken []string
	for _, r := range RepairsOn(n) {
		p := Place{Node: n.Name, Target: r.Target, Since: since}
		if r.Record == nil {
			p.Phase, p.Hold = "Malformed", &Hold{Reason: remediations.ReasonRecordMalformed, Message: r.Problem}
			p.Change = s.change(p.Hold, "")
			out = append(out, p)
			continue
		}
		rec := r.Record
		taken = append(append(taken, rec.Cause.Alert), rec.Also...)
		p.Repair, p.Policy, p.Step, p.Phase = rec.ID, rec.Policy, rec.Step.String(), string(rec.Phase)
		if !fires || r.Target != nodeTarget {
			p.Since = rec.Began
		}
		switch rec.Phase {
		case remediations.PhaseActing, remediations.PhaseVerifying:
			p.Deadline = &rec.Deadline
		case remediations.PhasePending:
			if p.Hold = l.HoldNow(n, rec.Policy, rec, now); p.Hold != nil {
				p.Change = s.change(p.Hold, rec.Policy)
			}
		case remediations.PhaseExhausted:
			p.Hold, p.Change = spent(rec), afterFix(n.Name)
		}
		out = append(out, p)
	}
	if slices.ContainsFunc(out, func(p Place) bool { return p.Target == nodeTarget }) {
		return out // other alerts of the node wait until this repair has ended
	}
	for _, a := range firing(n) {
		if slices.Contains(taken, a.Fingerprint) {
			continue
		}
		p := Place{Node: n.Name, Target: nodeTarget, Policy: a.Policy, Phase: "Waiting", Since: a.StartsAt}
		if p.Hold = l.HoldNow(n, a.Policy, nil, now); p.Hold != nil {
			p.Change = s.change(p.Hold, a.Policy)
		}
		return append(out, p)
	}
	return out
}
