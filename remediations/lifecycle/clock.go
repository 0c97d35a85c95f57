package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Trusts reports whether most leases confirm this clock, so that a time from the future is wrong.
// ask: the leases must be read first.
func (s *State) Trusts(now time.Time) (yes, ask bool) {
	return remediations.ClocksAgree(s.Heartbeats, now), s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt).Abs() > remediations.LookFor
}

// NeverIssued reports whether the record's step was issued further in the future than any phase
// lasts, while most kubelets' clocks agree with this one. Drydock does not wait for such a time.
func (s *State) NeverIssued(r *remediations.Record, now time.Time) bool {
	return remediations.FarAhead(r.Intent.At, now) && remediations.ClocksAgree(s.Heartbeats, now)
}

// WaitForClock waits until this clock has reached the record's last step. The leases then show
// whose clock is wrong.
func (s *State) WaitForClock(r *remediations.Record, p *remediations.Policy, proof time.Duration, now time.Time) Decision {
	d := Decision{Verb: VerbWait, Policy: p, Recheck: r.Intent.At.Add(proof), Message: clockBehind}
	d.Ask.Heartbeats = remediations.FarAhead(r.Intent.At, now)
	return d
}

// Clamp corrects what a leader with a clock ahead wrote on the Node, where the target is the node
// itself. Ledger.Clamp does the same for the ledger. A repair that "ended" in a month would
// otherwise hold the next one until then. A repair that waits for a call or a proof is left alone,
// because the wait ends by itself.
func (t *Base) Clamp(now time.Time) (d Decision, wrong bool) {
	d = Decision{Verb: VerbRest, Recheck: now, Message: "times from the future on the Node are set to now"}
	history, changed := slices.Clone(t.Journal.History), false
	for i := range history {
		remediations.ClampTo(now, &changed)(&history[i].Began)
		remediations.ClampTo(now, &changed)(&history[i].Ended)
	}
	if changed {
		d.History = history
	}
	for _, a := range t.Journal.Alerts {
		if a.Cancelled != nil && remediations.FromTheFuture(a.Cancelled.At, now) {
			a.Cancelled = &remediations.CancelledRepair{ID: a.Cancelled.ID, At: remediations.Instant(now)}
			d.Alerts, changed = append(d.Alerts, a), true
		}
	}
	if r := t.Record; r != nil && (r.Phase == remediations.PhasePending || (r.Phase == remediations.PhaseActing && !t.Config.Remediation(r.Step.Name).Once)) {
		if c, wrong := t.Config.Clamped(t.PolicyOf(r), r, now); wrong {
			d.Record, changed = c, true
		}
	}
	return d, changed
}
