package remediations

import (
	"slices"
	"time"
)

// withheld says that the last look withheld the call, so that the attempt is given back. Only the process that withheld the
// call can know: to every other one an intent without an outcome counts as issued. Where the node itself is not the reason
// (the intent grew too old, the API server did not answer), that goes on for as long as a repair may be held at most.
func (c *Call) withheld(r *Record, now time.Time) bool {
	return c != nil && c.Withheld && c.IntentID == r.Intent.ID && c.Outcome == CallRefused &&
		(c.WordOnNode || now.Before(r.Began.Add(pendingFor)))
}

// withheld says that the attempt which was to be made last was given back: no intent is left, and its Step is still to come.
func (r *Record) withheld() bool {
	return r.Phase == Pending && r.Intent != nil && r.Intent.ID == ""
}

// giveBack takes an attempt off the record that never left this process. The repair waits for a moment, and goes on with
// the same attempt once no guard holds it.
func (s *State) giveBack(now time.Time) Decision {
	r, why := s.Journal.Record.clone(), s.Call.Why
	if n := len(r.Done); n > 0 && r.Done[n-1] == r.Step.String() {
		r.Done = r.Done[:n-1]
	}
	r.Intent.ID, r.Intent.Outcome, r.Intent.Why = "", "", clip(why, 300)
	r.Phase, r.Since, r.Deadline = Pending, at(now), at(now.Add(pendingFor))
	reason, message := s.wordOnNode(now)
	if reason == "" {
		reason, message = ProviderAbsent, "the call was not made: "+why
	}
	r.Hold = &Hold{Reason: reason, Message: clip(message, 400), Since: at(now)}
	return Decision{Verb: Keep, Reason: reason, Message: message, Policy: s.policy(), Record: r, Recheck: now.Add(refusedFor)}
}

// afterWithheld waits before the attempt that was given back: what withheld it may do so again.
func (s *State) afterWithheld(p *Policy, now time.Time) (Decision, bool) {
	r := s.Journal.Record
	wait := r.Since.Add(refusedFor).Sub(now)
	if !r.withheld() || r.Hold == nil || wait <= 0 || wait > refusedFor {
		return Decision{}, false
	}
	return Decision{Verb: Keep, Reason: r.Hold.Reason, Message: r.Hold.Message, Policy: p, Recheck: now.Add(wait)}, true
}

// wordOnNode is the guard that holds everything on the node, because a person or another system said so; empty: none.
func (s *State) wordOnNode(now time.Time) (Reason, string) {
	c := &candidate{State: s, now: now, policy: &Policy{}}
	for _, g := range guards {
		if !slices.Contains([]Reason{ReasonExcluded, Paused, NodeLeaving}, g.reason) {
			continue
		}
		if f := g.find(c); f != nil {
			return g.reason, f.message
		}
	}
	// One whose time is over is taken off once the leases agree with this clock; until then it stands.
	for _, key := range []string{BreakGlassKey, PauseKey} {
		if _, ok := s.Node.Annotations[key]; ok {
			return Paused, key + " is still set"
		}
	}
	return "", ""
}
