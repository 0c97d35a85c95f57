package remediations

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/signs"
)

const (
	// ActingFor is how long a call may take, by far: a call still without an outcome then counts as perhaps done.
	ActingFor = time.Minute
	// PendingFor bounds how long a repair may be held before it ends; if its alert still fires, a new one begins.
	PendingFor = 24 * time.Hour
	// UnconfirmedFor is how long an alert that no Alertmanager knows is kept: a post may overtake the poll.
	UnconfirmedFor = time.Minute
	// LookFor is how fresh a look must be when a side effect rests on it. It is longer than a replica may take to
	// answer, and far below the 30 s of invariant 5, so that a silence made a moment ago is seen.
	LookFor = 10 * time.Second
	// OutageFor is how long the ledger or the leases may be missing before that holds repairs, and people are told.
	OutageFor = time.Minute
)

// OverdueFor is how long a repair in flight may outlive its deadline before it counts no more where only its Node shows it.
const OverdueFor = 5 * time.Minute

// FarAway is later than any time that is asked about.
var FarAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// phaseFor is the longest time that the record's phase may take by its policy. p is nil where the policy is gone.
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

// Flight is when a disruptive record that is in flight occupies the fleet though the ledger has no slot for it. Each repair
// takes its slot before its intent, so such a record is one whose slot a person took out of the ledger, or one that Drydock
// never wrote: it counts for as long as its step may take, and not at all where its policy does not enforce.
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

// Later is the later of two times.
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

// WouldUntil is until when the step that the mode alone holds back would take its place: as long as its proof may take or, of a
// step that takes its time, as long as that may. Zero: something else holds the record, or nothing.
func (c *Config) WouldUntil(p *Policy, r *Record) time.Time {
	if r == nil || r.Phase != PhasePending || r.Hold == nil || r.Hold.Reason != ReasonObserving {
		return time.Time{}
	}
	if c.Remediation(r.Step.Name).Once {
		return r.Hold.Since.Add(c.WaitOf(p, r.Step))
	}
	return r.Hold.Since.Add(timeoutOf(p, r.Step))
}

// timeoutOf is how long a step may take that takes its time.
func timeoutOf(p *Policy, step StepRef) time.Duration {
	if s, there := p.StepAt(step); there {
		return s.Timeout
	}
	return time.Hour
}

// unknownWait is for a step of another version of Drydock, which this one does not know.
const unknownWait = 10 * time.Minute

// WaitOf is how long the proof of a step that is on record may take: as its plan says or, where that has it no more or there is
// no plan, as the remediation itself.
func (c *Config) WaitOf(p *Policy, step StepRef) time.Duration {
	if s, there := p.StepAt(step); there {
		return s.Wait
	}
	return cmp.Or(c.Remediation(step.Name).Wait, unknownWait)
}

// LongestWait is how long any step may take of a policy that is not off.
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

// ahead is how far a time may lie in the future: clocks are never quite the same.
const ahead = time.Minute

// FromTheFuture says that the time was written by a clock that was wrong, if this one is right.
func FromTheFuture(t, now time.Time) bool { return t.After(now.Add(ahead)) }

// ClocksAgree says that most kubelets' clocks agree with this one: only then may a time from the future be called wrong.
func ClocksAgree(h *signs.Heartbeats, now time.Time) bool {
	return h != nil && now.Sub(h.ReadAt).Abs() <= LookFor && 2*h.Stale < h.Nodes
}

// ClampTo gives a function that sets a time from the future to now, and notes that there was one.
func ClampTo(now time.Time, changed *bool) func(*time.Time) {
	return func(t *time.Time) {
		if FromTheFuture(*t, now) {
			*t, *changed = Instant(now), true
		}
	}
}

// Clamped is the record with its times set right: those from the future to now, and a deadline that is further away than its
// phase may last to the end of that. false: none was wrong.
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

// FarAhead says that the time lies further ahead than any phase lasts.
func FarAhead(t, now time.Time) bool { return t.After(now.Add(PendingFor + ahead)) }
