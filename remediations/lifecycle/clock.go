package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Trusts says that this clock is right by most leases, so that a time from the future is wrong. ask: they must be read first.
func (s *State) Trusts(now time.Time) (yes, ask bool) {
	return remediations.ClocksAgree(s.Heartbeats, now), s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt).Abs() > remediations.LookFor
}

// NeverIssued says that the record's step was issued later than now by more than any phase lasts, and that most kubelets'
// clocks agree with this one: nobody waits for that time.
func (s *State) NeverIssued(r *remediations.Record, now time.Time) bool {
	return remediations.FarAhead(r.Intent.At, now) && remediations.ClocksAgree(s.Heartbeats, now)
}

// WaitForClock waits until this clock has reached the record's last step, and asks the leases whose clock is wrong.
func (s *State) WaitForClock(r *remediations.Record, p *remediations.Policy, proof time.Duration, now time.Time) Decision {
	d := Decision{Verb: VerbWait, Policy: p, Recheck: r.Intent.At.Add(proof), Message: clockBehind}
	d.Ask.Heartbeats = remediations.FarAhead(r.Intent.At, now)
	return d
}

// Clamp sets right what a leader whose clock was ahead wrote on the Node of the target, which is the node itself, as Ledger.Clamp does for the ledger: a repair that ended
// in a month would hold the next one until then. A call under way is left alone, and so is a proof that is waited for: both have
// an end of their own.
func (t *Target) Clamp(now time.Time) (d Decision, wrong bool) {
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
