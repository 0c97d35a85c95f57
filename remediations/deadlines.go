package remediations

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

const (
	// ActingFor is far longer than a call takes. A call without an outcome then counts as perhaps
	// done.
	ActingFor = time.Minute
	// PendingFor bounds how long a repair may be held before it ends. If its alert still fires, a
	// new repair begins.
	PendingFor = 24 * time.Hour
	// UnconfirmedFor is how long an alert that no Alertmanager knows is kept, because a post may
	// arrive before the poll.
	UnconfirmedFor = time.Minute
	// LookFor is how fresh an observation must be when a side effect depends on it. It is longer
	// than a replica may take to answer. It is far below the 30 s of invariant 5, so that Drydock
	// sees a silence made a moment ago.
	LookFor = 10 * time.Second
	// OutageFor is how long the ledger or the leases may be missing before the outage holds repairs
	// and is reported.
	OutageFor = time.Minute
)

// OverdueFor is how long after its deadline a repair in flight still counts, if only its Node shows
// it.
const OverdueFor = 5 * time.Minute

// FarAway is later than any time that Drydock compares with it.
var FarAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// phaseFor returns the longest time that the policy allows for the record's phase. p is nil if the
// policy no longer exists.
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

// Flight returns when a disruptive record in flight counts against the limits although the ledger
// has no slot for it. Each repair takes its slot before its intent. So a person took the slot out
// of the ledger, or Drydock never wrote the record. The record counts for as long as its step may
// take, and not at all if its policy does not enforce.
func (c *Config) Flight(n *corev1.Node, r *Record) (from, until time.Time) {
	return c.flightBy(c.PolicyOf(r.Policy, n), r)
}

func (c *Config) flightBy(p *Policy, r *Record) (from, until time.Time) {
	if p != nil && p.Mode != ModeEnforce {
		return time.Time{}, time.Time{}
	}
	return r.Intent.At, Earlier(r.Deadline, r.Intent.At.Add(ActingFor+c.phaseFor(p, r))).Add(OverdueFor)
}

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

// WouldUntil returns how long a step that only the mode holds would occupy its place. That is the
// wait for its proof or, for a repeatable step, its timeout. Zero: something else holds the record,
// or nothing does.
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

// unknownWait is the wait of a step that this version of Drydock does not know.
const unknownWait = 10 * time.Minute

// WaitOf returns how long the proof of a step on record may take. The plan gives the time or, if
// the plan no longer has the step, the remediation itself.
func (c *Config) WaitOf(p *Policy, step StepRef) time.Duration {
	if s, there := p.StepAt(step); there {
		return s.Wait
	}
	return cmp.Or(c.Remediation(step.Name).Wait, unknownWait)
}

// LongestWait returns the longest time that any step of a policy may take. Policies whose mode is
// off do not count.
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

// ahead is how far a time may lie in the future: clocks always differ a little.
const ahead = time.Minute

// FromTheFuture reports whether a wrong clock wrote the time, if this replica's clock is right.
func FromTheFuture(t, now time.Time) bool { return t.After(now.Add(ahead)) }

// ClocksAgree reports whether most kubelets' clocks agree with this one. Only then may Drydock call
// a time from the future wrong.
func ClocksAgree(h *signs.Heartbeats, now time.Time) bool {
	return h != nil && now.Sub(h.ReadAt).Abs() <= LookFor && 2*h.Stale < h.Nodes
}

// ClampTo returns a function that sets a time from the future to now, and records the change.
func ClampTo(now time.Time, changed *bool) func(*time.Time) {
	return func(t *time.Time) {
		if FromTheFuture(*t, now) {
			*t, *changed = Instant(now), true
		}
	}
}

// Clamped returns the record with corrected times. Times from the future become now, and a deadline
// beyond the phase's longest time becomes the end of that time. The second result is false if every
// time was right.
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

// FarAhead reports whether the time is further ahead than any phase can last.
func FarAhead(t, now time.Time) bool { return t.After(now.Add(PendingFor + ahead)) }
