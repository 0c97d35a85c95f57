package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// OverdueFor is how long a repair in flight may outlive its deadline before it counts no more where only its Node shows it.
const OverdueFor = 5 * time.Minute

// ahead is how far a time may lie in the future: clocks are never quite the same.
const ahead = time.Minute

// farAway is later than any time that is asked about.
var farAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// phaseFor is the longest time that the record's phase may take by its policy. p is nil where the policy is gone.
func (c *Config) phaseFor(p *Policy, r *Record) time.Duration {
	switch {
	case r.Phase == Pending:
		return PendingFor
	case r.Back != nil:
		return BackFor
	case r.Phase == Acting && c.Remediation(r.Step.Name).Once:
		return ActingFor
	case r.Phase == Acting:
		return timeoutOf(p, r.Step)
	}
	return c.WaitOf(p, r.Step)
}

// flight is when a disruptive record that is in flight occupies the fleet though the ledger has no slot for it. Each repair
// takes its slot before its intent, so such a record is one whose slot a person took out of the ledger, or one that Drydock
// never wrote: it counts for as long as its step may take, and not at all where its policy does not enforce.
func (c *Config) flight(n *corev1.Node, r *Record) (from, until time.Time) {
	return c.flightBy(c.PolicyOf(r.Policy, n), r)
}

func (c *Config) flightBy(p *Policy, r *Record) (from, until time.Time) {
	if p != nil && p.Mode != ModeEnforce {
		return time.Time{}, time.Time{}
	}
	return r.Intent.At, Earlier(r.Deadline, r.Intent.At.Add(ActingFor+c.phaseFor(p, r))).Add(OverdueFor)
}

func inFlightAt(from, until, now time.Time) bool {
	return !from.After(now.Add(ahead)) && now.Before(until)
}

// fromTheFuture says that the time was written by a clock that was wrong, if this one is right.
func fromTheFuture(t, now time.Time) bool { return t.After(now.Add(ahead)) }

// Agrees says that most kubelets' clocks agree with this one: only then may a time from the future be called wrong.
func (h *Heartbeats) Agrees(now time.Time) bool {
	return h != nil && now.Sub(h.ReadAt).Abs() <= LookFor && 2*h.Stale < h.Nodes
}

// clampTo gives a function that sets a time from the future to now, and notes that there was one.
func clampTo(now time.Time, changed *bool) func(*time.Time) {
	return func(t *time.Time) {
		if fromTheFuture(*t, now) {
			*t, *changed = Instant(now), true
		}
	}
}

// Clamp sets each time in the ledger that lies in the future to now, and says whether there was any. A leader whose clock was
// ahead for a moment would otherwise hold repairs for as long as its clock was ahead. The caller has asked whose clock is right.
func (l *Ledger) Clamp(now time.Time) (changed bool) {
	clamp := clampTo(now, &changed)
	begun := func(all []Begun) {
		for i := range all {
			clamp(&all[i].At)
		}
	}
	for i := range l.Slots {
		clamp(&l.Slots[i].Since)
	}
	for _, all := range l.Repairs {
		begun(all)
	}
	for _, all := range l.Moves {
		begun(all)
	}
	begun(l.Wide)
	for i := range l.Orphans {
		o := &l.Orphans[i]
		o.Record = *o.Record.Clone()
		clamp(&o.Record.Began)
		clamp(&o.Record.Since)
		if o.Record.Intent != nil {
			clamp(&o.Record.Intent.At)
		}
	}
	for scope, b := range l.Status.Breakers {
		clamp(&b.Since)
		clamp(&b.Quiet)
		clamp(&b.Seen)
		l.Status.Breakers[scope] = b
	}
	for node, g := range l.Status.Glass {
		clamp(&g.Since)
		l.Status.Glass[node] = g
	}
	clamp(&l.Status.SelfTest.Since)
	return changed
}

// Ahead says that some time in the ledger lies in the future.
func (l *Ledger) Ahead(now time.Time) bool {
	c := l.Clone()
	for i := range c.Orphans {
		c.Orphans[i].Record = *c.Orphans[i].Record.Clone()
	}
	return c.Clamp(now)
}

// Beyond says that the record's phase would last for longer than any does: a clock was wrong when it was written, or Drydock
// did not write it.
func (r *Record) Beyond(now time.Time) bool { return farAhead(r.Deadline, now) }

// Trusts says that this clock is right by most leases, so that a time from the future is wrong. ask: they must be read first.
func (s *State) Trusts(now time.Time) (yes, ask bool) {
	return s.Heartbeats.Agrees(now), s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt).Abs() > LookFor
}

// clamped is the record with its times set right: those from the future to now, and a deadline that is further away than its
// phase may last to the end of that. false: none was wrong.
func (c *Config) clamped(p *Policy, r *Record, now time.Time) (*Record, bool) {
	out, changed := r.Clone(), false
	clamp := clampTo(now, &changed)
	clamp(&out.Began)
	clamp(&out.Since)
	if out.Intent != nil {
		clamp(&out.Intent.At)
	}
	if out.Hold != nil {
		clamp(&out.Hold.Since)
	}
	if out.Beyond(now) {
		out.Deadline, changed = Instant(now.Add(c.phaseFor(p, out))), true
	}
	return out, changed
}

// farAhead says that the time lies further ahead than any phase lasts.
func farAhead(t, now time.Time) bool { return t.After(now.Add(PendingFor + ahead)) }

// NeverIssued says that the record's step was issued later than now by more than any phase lasts, and that most kubelets'
// clocks agree with this one: nobody waits for that time.
func (s *State) NeverIssued(r *Record, now time.Time) bool {
	return farAhead(r.Intent.At, now) && s.Heartbeats.Agrees(now)
}

func (r *Record) FromTheFuture() string {
	return fmt.Sprintf("its step %s is recorded as issued at %s, and most nodes' leases agree that this time is far ahead: a clock was wrong, or Drydock did not write the record", r.Step, r.Intent.At.Format(time.RFC3339))
}

// WaitForClock waits until this clock has reached the record's last step, and asks the leases whose clock is wrong.
func (s *State) WaitForClock(r *Record, p *Policy, proof time.Duration, now time.Time) Decision {
	d := Decision{Verb: Wait, Policy: p, Recheck: r.Intent.At.Add(proof), Message: clockBehind}
	d.Ask.Heartbeats = farAhead(r.Intent.At, now)
	return d
}

func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Clamp sets right what a leader whose clock was ahead wrote on the Node of the target, which is the node itself, as Ledger.Clamp does for the ledger: a repair that ended
// in a month would hold the next one until then. A call under way is left alone, and so is a proof that is waited for: both have
// an end of their own.
func (t *Target) Clamp(now time.Time) (d Decision, wrong bool) {
	d = Decision{Verb: Rest, Recheck: now, Message: "times from the future on the Node are set to now"}
	history, changed := slices.Clone(t.Journal.History), false
	for i := range history {
		clampTo(now, &changed)(&history[i].Began)
		clampTo(now, &changed)(&history[i].Ended)
	}
	if changed {
		d.History = history
	}
	for _, a := range t.Journal.Alerts {
		if a.Cancelled != nil && fromTheFuture(a.Cancelled.At, now) {
			a.Cancelled = &CancelledRepair{ID: a.Cancelled.ID, At: Instant(now)}
			d.Alerts, changed = append(d.Alerts, a), true
		}
	}
	if r := t.Record; r != nil && (r.Phase == Pending || (r.Phase == Acting && !t.Config.Remediation(r.Step.Name).Once)) {
		if c, wrong := t.Config.clamped(t.PolicyOf(r), r, now); wrong {
			d.Record, changed = c, true
		}
	}
	return d, changed
}
