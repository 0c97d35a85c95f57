package remediations

import (
	"time"

	"drydock.dev/drydock/remediations/signs"
)

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
