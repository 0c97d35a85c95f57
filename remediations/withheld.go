package remediations

import (
	"errors"
	"fmt"
	"time"
)

// withholding is the error of a last look that withholds a call. Its reason is the one that the record gives.
type withholding struct {
	reason Reason
	error
}

func (w withholding) Unwrap() error { return w.error }

// Withhold is an error that withholds a call for the reason.
func Withhold(reason Reason, format string, args ...any) error {
	return withholding{reason, fmt.Errorf(format, args...)}
}

// WithheldFor is the reason that the last look's error gives; otherwise: that of an error which gives none.
func WithheldFor(err error, otherwise Reason) Reason {
	if w := (withholding{}); errors.As(err, &w) {
		return w.reason
	}
	return otherwise
}

// withheld says that the last look withheld the call, so that the attempt is given back. Only the process that withheld the
// call can know: to every other one an intent without an outcome counts as issued. Where the target itself is not the reason
// (the intent grew too old, the API server did not answer), that goes on for as long as a repair may be held at most.
func (c *Call) withheld(r *Record, now time.Time) bool {
	if c == nil || c.Withheld == "" || c.IntentID != r.Intent.ID || c.Outcome != CallRefused {
		return false
	}
	passing := c.Withheld == CallWithheld || c.Withheld == Blind
	return !passing || now.Before(r.Began.Add(PendingFor))
}

// Withheld says that the attempt which was to be made last was given back: no intent is left, and its Step is still to come.
func (r *Record) Withheld() bool {
	return r.Phase == Pending && r.Intent != nil && r.Intent.ID == ""
}

// giveBack takes an attempt off the record that never left this process. The repair waits for a moment, and goes on with
// the same attempt once no guard holds it.
func (r *Record) giveBack(c *Call, p *Policy, wait time.Duration, now time.Time) Decision {
	r = r.Clone()
	if n := len(r.Done); n > 0 && r.Done[n-1] == r.Step.String() {
		r.Done = r.Done[:n-1]
	}
	r.Intent.ID, r.Intent.Outcome, r.Intent.Why = "", "", clip(c.Why, 300)
	if n := len(r.Moves); n > 0 {
		r.Moves, r.Intent.Successor = r.Moves[:n-1], ""
		r.Undo = r.Undo[:len(r.Undo)-1]
		if n > 1 {
			r.Intent.Successor = r.Moves[n-2].To
		}
	}
	message := "the call was not made: " + c.Why
	r.Phase, r.Since, r.Deadline = Pending, Instant(now), Instant(now.Add(PendingFor))
	r.Hold = &Hold{Reason: c.Withheld, Message: clip(message, 400), Since: Instant(now)}
	return Decision{Verb: Keep, Reason: c.Withheld, Message: message, Fleetwide: c.Withheld.Fleetwide(), Policy: p, Record: r, Recheck: now.Add(wait)}
}

// NameIntent names an intent whose attempt was given back, when the repair goes on without making it: only while the record is
// Pending is an intent without a name one that is still to come.
func (r *Record) NameIntent() {
	if r.Intent != nil && r.Intent.ID == "" {
		r.Intent.ID = r.ID + "-withheld"
	}
}

// AfterWithheld waits before the attempt that was given back: what withheld it may do so again.
func (r *Record) AfterWithheld(p *Policy, wait time.Duration, now time.Time) (Decision, bool) {
	left := r.Since.Add(wait).Sub(now)
	if !r.Withheld() || r.Hold == nil || left <= 0 || left > wait {
		return Decision{}, false
	}
	return Decision{Verb: Keep, Reason: r.Hold.Reason, Message: r.Hold.Message, Fleetwide: r.Hold.Reason.Fleetwide(), Policy: p, Recheck: now.Add(left)}, true
}
