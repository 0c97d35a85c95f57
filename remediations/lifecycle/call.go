package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// answer is what became of the call for the intent. A call that this process knows nothing of was made, or not, by one that
// is gone: it counts as issued. underWay: it may still be answered until the deadline.
func (c *Call) answer(intentID string, deadline, now time.Time) (outcome remediations.CallOutcome, why string, underWay bool) {
	switch {
	case c == nil || c.IntentID != intentID:
		return remediations.CallUnknown, "the call's answer is unknown, since Drydock was restarted or lost its lead", false
	case c.Outcome != "":
		return c.Outcome, c.Why, false
	}
	return remediations.CallUnknown, "the call had no answer in time", now.Before(deadline)
}

// clockBehind is what is said of a repair whose last step is in this process's future.
const clockBehind = "this process's clock is behind the repair's last step; it cannot distinguish what it sees from what was there before"

// withheld says that certainly nothing was done, so that the attempt is given back. Only the process that made the call can know: to
// every other one an intent without an outcome counts as issued. tooLong: the target itself is not the reason (the intent grew too
// old, the API server or the provider did not answer), and that has lasted for as long as a repair may be held at most.
func (c *Call) withheld(r *remediations.Record, now time.Time) (back, tooLong bool) {
	if c == nil || c.Withheld == "" || c.IntentID != r.Intent.ID || c.Outcome != remediations.CallRefused {
		return false, false
	}
	passing := c.Withheld == remediations.ReasonCallWithheld || c.Withheld == remediations.ReasonBlind
	return true, passing && !now.Before(r.Began.Add(remediations.PendingFor))
}

const (
	// unreachableAfter is after how many calls in a row that could not be made the step is held as ProviderUnreachable.
	unreachableAfter = 5
	// CallAgain is how long Drydock then waits before each further call.
	CallAgain = 5 * time.Minute
)

// Unreachable says that the calls for the step on record could not be made, again and again.
func Unreachable(r *remediations.Record) bool { return r != nil && r.Unreached >= unreachableAfter }

// UnreachableAlone says that as many of them, the last ones, failed because of this machine.
func UnreachableAlone(r *remediations.Record) bool { return r != nil && r.Alone >= unreachableAfter }

// Call is one call to a provider, or one run of a step that takes its time.
type Call struct {
	IntentID string
	// Outcome is empty while the call is under way.
	Outcome remediations.CallOutcome
	Why     string
	// Withheld is why the last look withheld the call, so that nothing left this process; empty: it did not.
	Withheld remediations.Reason
	// Alone: the provider says that the call failed because of this machine. Otherwise its cause may be one of all machines, or
	// Drydock's own.
	Alone bool
	// Stop: the provider refuses the account. The policy is stopped only when calls for two machines were refused so.
	Stop bool
	// Note is how far a step is that takes its time; Blocked names what is in its way, and stays while that does.
	Note, Blocked string
	// Silence is the id of the silence that was made when the call was accepted.
	Silence string
}

// giveBack takes an attempt off the record for which certainly nothing was done. The repair waits for a moment, and goes on with
// the same attempt once no guard holds it. What cannot be called again and again is held as ProviderUnreachable: it costs no attempt,
// so the plan does not go on to a step that costs more.
func giveBack(r *remediations.Record, c *Call, p *remediations.Policy, wait time.Duration, now time.Time) Decision {
	r = r.Clone()
	if n := len(r.Done); n > 0 && r.Done[n-1] == r.Step.Issued() {
		r.Done = r.Done[:n-1]
	}
	r.Intent.ID, r.Intent.Outcome, r.Intent.Why = "", "", text.Line(c.Why, 300)
	if n := len(r.Moves); n > 0 {
		r.Moves, r.Intent.Successor = r.Moves[:n-1], ""
		r.Undo = r.Undo[:len(r.Undo)-1]
		if n > 1 {
			r.Intent.Successor = r.Moves[n-2].To
		}
	}
	reason, message := c.Withheld, c.Why
	if !strings.Contains(message, "nothing was done") { // as a provider's sentence may say
		message = "nothing was done: " + message
	}
	if reason == remediations.ReasonCallWithheld {
		if r.Alone++; !c.Alone {
			r.Alone = 0
		}
		if r.Unreached++; Unreachable(r) {
			reason, wait = remediations.ReasonProviderUnreachable, max(wait, CallAgain)
			message = fmt.Sprintf("%d calls in a row for the step %s failed; the last one: %s", r.Unreached, r.Step.Name, c.Why)
		}
	}
	r.Phase, r.Since, r.Deadline = remediations.PhasePending, remediations.Instant(now), remediations.Instant(now.Add(remediations.PendingFor))
	r.Hold = &remediations.Hold{Reason: reason, Message: text.Line(message, 400), Since: remediations.Instant(now)}
	d := Decision{Verb: VerbHold, Reason: reason, Message: message, Fleetwide: reason.Fleetwide(), Policy: p, Record: r, Recheck: now.Add(wait)}
	if c.Stop {
		d.Stop = text.Line(c.Why, 300)
	}
	return d
}

// AfterWithheld waits before the attempt that was given back: what withheld it may do so again.
func AfterWithheld(r *remediations.Record, p *remediations.Policy, wait time.Duration, now time.Time) (Decision, bool) {
	if Unreachable(r) {
		wait = max(wait, CallAgain)
	}
	left := r.Since.Add(wait).Sub(now)
	if !r.Withheld() || r.Hold == nil || left <= 0 || left > wait {
		return Decision{}, false
	}
	return Decision{Verb: VerbHold, Reason: r.Hold.Reason, Message: r.Hold.Message, Fleetwide: r.Hold.Reason.Fleetwide(), Policy: p, Recheck: now.Add(left)}, true
}
