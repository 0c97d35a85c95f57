package remediations

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

const (
	// How long to wait for the outcome of a call, far longer than a call takes. After that the
	// outcome is unknown, and the call counts as made.
	ActingFor = time.Minute
	// PendingFor is how long a repair may be held before it ends. If its alert still fires then, a
	// new repair begins.
	PendingFor = 24 * time.Hour
	// UnconfirmedFor is how long Drydock keeps an alert that no Alertmanager knows. A post may
	// arrive before the poll that confirms it.
	UnconfirmedFor = time.Minute
	// The greatest age of an observation that a call may depend on, longer than the longest wait
	// for an Alertmanager's answer. Invariant 5 in doc.go allows 30 s, but with this shorter time a
	// new silence stops a call sooner.
	LookFor = 10 * time.Second
	// How long the ledger or the leases may be unreadable until repairs are held and the outage is
	// reported.
	OutageFor = time.Minute
)

// OverdueFor is how long after its deadline a repair still counts against the limits if it has no
// slot in the ledger.
const OverdueFor = 5 * time.Minute

// FarAway stands for an unknown end.
var FarAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// The longest time that the record's phase may last. p is nil if the policy no longer exists.
func (c *Config) phaseFor(p *Policy, r *Record) time.Duration {
	switch {
	case r.Phase == PhasePending:
		return PendingFor
	case r.Back != nil:
		return BackFor
	case r.Phase == PhaseActing && c.Remediation(r.Step.Name).Once:
		return ActingFor
	case r.Phase == PhaseActing:
		return timeoutOf(p, r.Step)
	}
	return c.WaitOf(p, r.Step)
}

// Flight returns from when and until when a disruptive repair without a slot in the ledger counts
// against the limits. The slot is always written before the intent, so a person has removed it, or
// Drydock did not write the record. Both times are zero if the policy does not enforce: the repair
// then does not count.
func (c *Config) Flight(n *corev1.Node, r *Record) (from, until time.Time) {
	return c.flightBy(c.PolicyOf(r.Policy, n), r)
}

func (c *Config) flightBy(p *Policy, r *Record) (from, until time.Time) {
	if p != nil && p.Mode != ModeEnforce {
		return time.Time{}, time.Time{}
	}
	return r.Intent.At, Earlier(r.Deadline, r.Intent.At.Add(ActingFor+c.phaseFor(p, r))).Add(OverdueFor)
}

// InFlightAt reports whether now is between the times from and until, which Flight returned. It
// allows for small differences between clocks.
func InFlightAt(from, until, now time.Time) bool {
	return !from.After(now.Add(ahead)) && now.Before(until)
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// WouldUntil returns when a repair in observe mode no longer counts against the limits: when the
// wait for the step's proof, or its timeout, would end. It is zero unless the record is held for
// the reason Observing.
func (c *Config) WouldUntil(p *Policy, r *Record) time.Time {
	if r == nil || r.Phase != PhasePending || r.Hold == nil || r.Hold.Reason != ReasonObserving {
		return time.Time{}
	}
	if c.Remediation(r.Step.Name).Once {
		return r.Hold.Since.Add(c.WaitOf(p, r.Step))
	}
	return r.Hold.Since.Add(timeoutOf(p, r.Step))
}

// timeoutOf returns how long a repeatable step may take.
func timeoutOf(p *Policy, step StepRef) time.Duration {
	if s, there := p.StepAt(step); there {
		return s.Timeout
	}
	return time.Hour
}

// unknownWait is for a step that this version of Drydock does not know.
const unknownWait = 10 * time.Minute

// WaitOf returns how long to wait for the proof of a record's step: the wait in the plan or, if the
// plan no longer has the step, the default.
func (c *Config) WaitOf(p *Policy, step StepRef) time.Duration {
	if s, there := p.StepAt(step); there {
		return s.Wait
	}
	return cmp.Or(c.Remediation(step.Name).Wait, unknownWait)
}

// LongestWait returns the longest wait for the proof of any step, of all policies that are not off.
func (c *Config) LongestWait() time.Duration {
	longest := ActingFor
	for _, p := range c.Policies {
		if p.Mode == ModeOff {
			continue
		}
		for _, s := range p.Plan {
			longest = max(longest, s.Wait)
		}
	}
	return longest
}

// The clocks of two machines always differ a little.
const ahead = time.Minute

// FromTheFuture reports whether the time is so far ahead that this process's clock, or that of the
// writer, is wrong.
func FromTheFuture(t, now time.Time) bool { return t.After(now.Add(ahead)) }

// ClocksAgree reports whether most kubelets' leases are fresh by this process's clock: then this
// clock is right, and a recorded time in the future is wrong. It returns false if the leases were
// read longer than LookFor ago.
func ClocksAgree(h *signs.Heartbeats, now time.Time) bool {
	return h != nil && now.Sub(h.ReadAt).Abs() <= LookFor && 2*h.Stale < h.Nodes
}

// ClampTo returns a function that sets a time in the future to now, and then sets changed.
func ClampTo(now time.Time, changed *bool) func(*time.Time) {
	return func(t *time.Time) {
		if FromTheFuture(*t, now) {
			*t, *changed = Instant(now), true
		}
	}
}

// Clamped returns a copy of the record with corrected times. Times in the future become now, and a
// deadline that is too late becomes the phase's latest possible end. The second result reports
// whether it changed any time.
func (c *Config) Clamped(p *Policy, r *Record, now time.Time) (*Record, bool) {
	out, changed := r.Clone(), false
	clamp := ClampTo(now, &changed)
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

// FarAhead reports whether the time is further in the future than any phase of a repair can last.
func FarAhead(t, now time.Time) bool { return t.After(now.Add(PendingFor + ahead)) }
