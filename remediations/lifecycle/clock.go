package lifecycle

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Trusts reports whether most node leases confirm this process's clock. A recorded time in the
// future is then wrong. ask is true if the leases must be read again first.
func (s *State) Trusts(now time.Time) (yes, ask bool) {
	return remediations.ClocksAgree(s.Heartbeats, now), s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt).Abs() > remediations.LookFor
}

// NeverIssued reports whether the recorded time of the step is wrong: it is further ahead than any
// phase lasts, and most kubelets' clocks agree with this process's clock.
func (s *State) NeverIssued(r *remediations.Record, now time.Time) bool {
	return remediations.FarAhead(r.Intent.At, now) && remediations.ClocksAgree(s.Heartbeats, now)
}

// WaitForClock waits until this process's clock has passed the time of the last step. If that is
// far ahead, it requests the node leases, which show whose clock is wrong.
func (s *State) WaitForClock(r *remediations.Record, p *remediations.Policy, proof time.Duration, now time.Time) Decision {
	d := Decision{Verb: VerbWait, Policy: p, Recheck: r.Intent.At.Add(proof), Message: clockBehind}
	d.Ask.Heartbeats = remediations.FarAhead(r.Intent.At, now)
	return d
}

// Clamp replaces future times in a node's annotations with now. A leader whose clock was ahead may
// have written them: a repair that ended "next month" would hold the next one until then. A repair
// that waits for a call or a proof is not changed, because that wait ends by itself.
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
