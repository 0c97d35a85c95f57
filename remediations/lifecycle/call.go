package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// answer returns the outcome of the call. If c is not the call for this intent, an earlier process
// may have made it: the outcome is unknown, and the call counts as made. underWay is true if an
// answer may still arrive before the deadline.
func (c *Call) answer(intentID string, deadline, now time.Time) (outcome remediations.CallOutcome, why string, underWay bool) {
	switch {
	case c == nil || c.IntentID != intentID:
		return remediations.CallUnknown, "the result of the call is unknown, because Drydock restarted or lost its leadership", false
	case c.Outcome != "":
		return c.Outcome, c.Why, false
	}
	return remediations.CallUnknown, "the call had no answer in time", now.Before(deadline)
}

const clockBehind = "this process's clock is behind the time of the repair's last step, so Drydock cannot know which observations are newer than the step"

// back is true if the attempt does not count, because certainly nothing was done. Only the process
// that made the call can know this. tooLong is true if the repair has been held for its longest
// time and the cause is not the target. For example, the provider does not answer.
func (c *Call) withheld(r *remediations.Record, now time.Time) (back, tooLong bool) {
	if c == nil || c.Withheld == "" || c.IntentID != r.Intent.ID || c.Outcome != remediations.CallRefused {
		return false, false
	}
	passing := c.Withheld == remediations.ReasonCallWithheld || c.Withheld == remediations.ReasonBlind
	return true, passing && !now.Before(r.Began.Add(remediations.PendingFor))
}

const (
	// unreachableAfter is how many calls in a row must fail before ProviderUnreachable holds the
	// step.
	unreachableAfter = 5
	// CallAgain is the least time between two calls while ProviderUnreachable holds the step.
	CallAgain = 5 * time.Minute
)

func unreachable(r *remediations.Record) bool { return r != nil && r.Unreached >= unreachableAfter }

// UnreachableAlone reports whether at least the last unreachableAfter calls failed because of this
// machine alone.
func UnreachableAlone(r *remediations.Record) bool { return r != nil && r.Alone >= unreachableAfter }

// Call is one call to a provider, or one run of a repeatable step.
type Call struct {
	IntentID string
	// Outcome is empty while the call is running.
	Outcome remediations.CallOutcome
	Why     string
	// Withheld is why certainly nothing was done, so that the attempt does not count: the last
	// check stopped the call, or the provider refused it and may accept it later. It is empty if
	// something may have been done.
	Withheld remediations.Reason
	// Alone is true if the provider reports that the failure concerns only this machine.
	Alone bool
	// Stop is true if the provider refuses Drydock's account. The policy stops only after such
	// refusals for two machines.
	Stop bool
	// Again is how long the provider asks clients to wait before the next call, or zero.
	Again time.Duration
	Note  string
	// Blocked is why the repeatable step cannot continue now, or empty.
	Blocked string
	// Silence is the silence that Drydock created when the call was accepted.
	Silence string
}

// giveBack takes an attempt back that certainly did nothing. The repair repeats it after wait. The
// plan does not continue to a more invasive step, because no attempt was used up.
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
	if !strings.Contains(message, "nothing was done") { // the provider's message may contain it
		message = "nothing was done: " + message
	}
	if reason == remediations.ReasonCallWithheld {
		if r.Alone++; !c.Alone {
			r.Alone = 0
		}
		if r.Unreached++; unreachable(r) {
			reason, wait = remediations.ReasonProviderUnreachable, max(wait, CallAgain)
			message = fmt.Sprintf("%s in a row for the step %s failed; the last one: %s", text.Count(r.Unreached, "call"), r.Step.Name, c.Why)
		}
	}
	r.Phase, r.Since, r.Deadline = remediations.PhasePending, remediations.Instant(now), remediations.Instant(now.Add(remediations.PendingFor))
	r.Hold = &remediations.Hold{Reason: reason, Message: text.Line(message, 400), Since: remediations.Instant(now)}
	if again := c.again(); again > wait {
		until := remediations.Instant(now.Add(again + time.Second - 1)) // rounded up to whole seconds, so that the call is not early
		r.Hold.Until, wait = &until, until.Sub(now)
	}
	d := Decision{Verb: VerbHold, Reason: reason, Message: message, Fleetwide: reason.Fleetwide(), Policy: p, Record: r, Recheck: now.Add(wait)}
	if c.Stop {
		d.Stop = text.Line(c.Why, 300)
	}
	return d
}

// againLongest is the longest wait that a provider can impose with Call.Again.
const againLongest = remediations.AskMended

func (c *Call) again() time.Duration { return min(c.Again, againLongest) }

// AfterWithheld returns a hold after an attempt that did nothing (see Call.Withheld), because the
// same cause would probably stop an immediate repetition. It lasts for wait, or for the longer time
// that the provider asked for.
func AfterWithheld(r *remediations.Record, p *remediations.Policy, wait time.Duration, now time.Time) (Decision, bool) {
	if unreachable(r) {
		wait = max(wait, CallAgain)
	}
	if !r.Withheld() || r.Hold == nil {
		return Decision{}, false
	}
	// Until is the end of this wait only if the hold began together with the phase. A guard's hold
	// begins later.
	if h := r.Hold; h.Until != nil && h.Since.Equal(r.Since) {
		wait = max(wait, min(h.Until.Sub(r.Since), againLongest+time.Second))
	}
	left := r.Since.Add(wait).Sub(now)
	if left <= 0 || left > wait {
		return Decision{}, false
	}
	return Decision{Verb: VerbHold, Reason: r.Hold.Reason, Message: r.Hold.Message, Fleetwide: r.Hold.Reason.Fleetwide(), Policy: p, Recheck: now.Add(left)}, true
}
