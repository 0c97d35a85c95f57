package remediations

import (
	"slices"
	"time"
)

// unprovenFor bounds, beside proofFor, how long a repair that has moved waits for a cure that is not proven, where nothing
// more can be done: as long as another repair of the location has to wait by default.
const unprovenFor = 15 * time.Minute

// unproven are the holds of a repair that has moved by which nothing more is tried, and which no person put there: the alert
// is over, or the probes say nothing, or something else than the alert. What holds otherwise is a matter of waiting.
var unproven = []Reason{AlertResolved, LeaderUnknown, LeaderHeld}

// hold keeps the candidate back, and writes so where that is the location's own matter.
func (s *LocationState) hold(c *candidate, pending *Record, reason Reason, f *finding) Decision {
	d := keeping(c, reason, f)
	d.Fleetwide = f.fleetwide || (reason.Fleetwide() && reason != AtLimit) // its limit is no node's
	d.Ask.Heartbeats = reason == Blind && s.Heartbeats.Blind() != "" && s.uncounted(c.now)
	if hold := newHold(reason, f, c.now); s.Record.holds(pending, hold, d.Fleetwide) {
		d.Record = pending.clone()
		d.Record.Hold, d.Record.Deadline = hold, s.heldUntil(c, pending, reason)
	}
	// What holds it may be this node's, and another one the leader by now. A repair that a person cancelled stays cancelled
	// though, whoever leads since; and what is being put back is put back.
	if pending.Back == nil && cancelled(c) == nil && s.elsewhere() {
		return s.leave(c.now)
	}
	if slices.Contains([]Reason{LeaderHeld, LeaderUnknown, NodeUnderRepair, Observing}, reason) {
		return s.seen().again(d, c.now, locationAgain)
	}
	return s.seen().again(d, c.now, locationElsewhere)
}

// heldUntil is until when the candidate may be held so. Whoever has moved and cannot prove the cure is not left alone with it
// for a day.
func (s *LocationState) heldUntil(c *candidate, pending *Record, reason Reason) time.Time {
	was := s.Record
	switch {
	case len(pending.Moves) == 0 || pending.Back != nil:
		return pending.Deadline
	case !slices.Contains(unproven, reason):
		return at(pending.Since.Add(pendingFor))
	case was.Phase == Pending && was.Hold != nil && slices.Contains(unproven, was.Hold.Reason):
		return was.Deadline // since when it is held so counts, whatever the words are now
	}
	return at(earlier(pending.Since.Add(pendingFor), c.now.Add(unprovenFor+c.policy.ProofFor)))
}
