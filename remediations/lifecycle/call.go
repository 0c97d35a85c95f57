package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// answer returns the outcome of the call for the intent. A call that this process does not know
// counts as issued, because a process that no longer runs may have made it. underWay: an answer may
// still come until the deadline.
func (c *Call) answer(intentID string, deadline, now time.Time) (outcome remediations.CallOutcome, why string, underWay bool) {
	switch {
	case c == nil || c.IntentID != intentID:
		return remediations.CallUnknown, "the call's answer is unknown, since Drydock was restarted or lost its lead", false
	case c.Outcome != "":
		return c.Outcome, c.Why, false
	}
	return remediations.CallUnknown, "the call had no answer in time", now.Before(deadline)
}

// clockBehind is the message for a repair whose last step is in this process's future.
const clockBehind = "this process's clock is behind the repair's last step; it cannot distinguish what it sees from what was there before"

// withheld reports whether certainly nothing was done, so that the attempt does not count. Only the
// process that made the call can know this. For every other process an intent without an outcome
// counts as issued. tooLong: the target itself is not the cause (the intent grew too old, or the
// API server or the provider did not answer). This has lasted for as long as a repair may be held.
func (c *Call) withheld(r *remediations.Record, now time.Time) (back, tooLong bool) {
	if c == nil || c.Withheld == "" || c.IntentID != r.Intent.ID || c.Outcome != remediations.CallRefused {
		return false, false
	}
	passing := c.Withheld == remediations.ReasonCallWithheld || c.Withheld == remediations.ReasonBlind
	return true, passing && !now.Before(r.Began.Add(remediations.PendingFor))
}

const (
	// unreachableAfter is how many calls in a row must fail before the step is held as
	// ProviderUnreachable.
	unreachableAfter = 5
	// CallAgain is how long Drydock then waits before each further call.
	CallAgain = 5 * time.Minute
)

// Unreachable reports whether the calls for the step on record failed repeatedly.
func Unreachable(r *remediations.Record) bool { return r != nil && r.Unreached >= unreachableAfter }

// UnreachableAlone reports whether the last of these calls, as many as Unreachable needs, failed
// because of this machine.
func UnreachableAlone(r *remediations.Record) bool { return r != nil && r.Alone >= unreachableAfter }

// Call is one call to a provider, or one run of a repeatable step.
type Call struct {
	IntentID string
	// Outcome is empty while the call is under way.
	Outcome remediations.CallOutcome
	Why     string
	// Withheld is why the last look withheld the call, so that nothing left this process; empty:
	// the call was made.
	Withheld remediations.Reason
	// Alone: according to the provider, the call failed because of this machine. Otherwise the
	// cause may concern all machines, or Drydock itself.
	Alone bool
	// Stop: the provider refuses Drydock's account. The policy is stopped only after such refusals
	// for two machines.
	Stop bool
	// Again is how long the provider asks clients to wait before the next call. Zero: it does not
	// say.
	Again time.Duration
	// Note is the progress of a repeatable step. Blocked names what blocks it, for as long as it
	// does.
	Note, Blocked string
	// Silence is the id of the silence that Drydock created when the call was accepted.
	Silence string
}

// giveBack removes an attempt from the record, because certainly nothing was done. The repair waits
// for a moment, and repeats the attempt once no guard holds it. A call that fails repeatedly is
// held as ProviderUnreachable. This costs no attempt, so the plan does not continue to a more
// invasive step.
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
		if r.Unreached++; Unreachable(r) {
			reason, wait = remediations.ReasonProviderUnreachable, max(wait, CallAgain)
			message = fmt.Sprintf("%s in a row for the step %s failed; the last one: %s", text.Count(r.Unreached, "call"), r.Step.Name, c.Why)
		}
	}
	r.Phase, r.Since, r.Deadline = remediations.PhasePending, remediations.Instant(now), remediations.Instant(now.Add(remediations.PendingFor))
	r.Hold = &remediations.Hold{Reason: reason, Message: text.Line(message, 400), Since: remediations.Instant(now)}
	if again := c.again(); again > wait {
		until := remediations.Instant(now.Add(again + time.Second - 1)) // rounded up: not before the provider wants it
		r.Hold.Until, wait = &until, until.Sub(now)
	}
	d := Decision{Verb: VerbHold, Reason: reason, Message: message, Fleetwide: reason.Fleetwide(), Policy: p, Record: r, Recheck: now.Add(wait)}
	if c.Stop {
		d.Stop = text.Line(c.Why, 300)
	}
	return d
}

// againLongest bounds how long the next call waits because a provider asks for it.
const againLongest = remediations.AskMended

func (c *Call) again() time.Duration { return min(c.Again, againLongest) }

// AfterWithheld waits before a withheld attempt is made again, because the same cause may withhold
// it again. If the provider wants a longer wait, the record's hold has the end of that wait.
func AfterWithheld(r *remediations.Record, p *remediations.Policy, wait time.Duration, now time.Time) (Decision, bool) {
	if Unreachable(r) {
		wait = max(wait, CallAgain)
	}
	if !r.Withheld() || r.Hold == nil {
		return Decision{}, false
	}
	// Another hold of the record has another Since.
	if h := r.Hold; h.Until != nil && h.Since.Equal(r.Since) {
		wait = max(wait, min(h.Until.Sub(r.Since), againLongest+time.Second))
	}
	left := r.Since.Add(wait).Sub(now)
	if left <= 0 || left > wait {
		return Decision{}, false
	}
	return Decision{Verb: VerbHold, Reason: r.Hold.Reason, Message: r.Hold.Message, Fleetwide: r.Hold.Reason.Fleetwide(), Policy: p, Recheck: now.Add(left)}, true
}
