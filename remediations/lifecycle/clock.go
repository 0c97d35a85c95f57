package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Trusts reports whether this process's clock can be trusted: yes is true if most node leases
// confirm it. Then a recorded time in the future must be wrong. ask is true if the leases must be
// read again first.
func (s *State) Trusts(now time.Time) (yes, ask bool) {
	return remediations.ClocksAgree(s.Heartbeats, now), s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt).Abs() > remediations.LookFor
}

// NeverIssued reports whether the recorded time of the step is wrong: it is further in the future
// than any phase lasts, and most kubelets' clocks agree with this process's clock. Drydock does not
// wait for such a time.
func (s *State) NeverIssued(r *remediations.Record, now time.Time) bool {
	return remediations.FarAhead(r.Intent.At, now) && remediations.ClocksAgree(s.Heartbeats, now)
}

// WaitForClock waits until this process's clock has passed the recorded time of the last step. If
// that time is far ahead, it requests the node leases, which show whose clock is wrong.
func (s *State) WaitForClock(r *remediations.Record, p *remediations.Policy, proof time.Duration, now time.Time) Decision {
	d := Decision{Verb: VerbWait, Policy: p, Recheck: r.Intent.At.Add(proof), Message: clockBehind}
	d.Ask.Heartbeats = remediations.FarAhead(r.Intent.At, now)
	return d
}

// Clamp replaces times in the future in a node's annotations with the present time. A leader whose
// clock was ahead may have written them. For example, a repair with an end in the next month would
// hold the next repair until then. Clamp does not change a repair that waits for a call or a proof,
// because that wait ends by itself. Ledger.Clamp does the same for the ledger.
func (t *Base) Clamp(now time.Time) (d Decision, wrong bool) {
	d = Decision{Verb: VerbRest, Recheck: now, Message: "the Node's annotations have times in the future; Drydock sets them to now"}
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
