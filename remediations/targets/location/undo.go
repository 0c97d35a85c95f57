package location

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// exhaust begins to undo the moves, because no further attempt is possible.
func (s *target) exhaust(c *lifecycle.Candidate, why string) lifecycle.Decision {
	r := s.Record.Clone()
	why = fmt.Sprintf("%s (%s), and location %s does not answer: %s", why, r.Done, s.Name, s.Missing())
	if against := s.againstPutBack(c.Policy); against != "" {
		return s.exhausted(why+"; "+against, false, c.Now)
	}
	if len(r.Made()) == 0 {
		return s.exhausted(why+"; no move was made, so there is nothing to put back", true, c.Now)
	}
	back := remediations.Instant(c.Now)
	r.Back, r.Note = &back, text.Line(why, 300)
	return s.putBack(r, c.Now)
}

// againstPutBack returns why the moves must not be undone, or an empty text. The node's kubelet
// could write a false record on its Node, but not the ledger. So the ledger must have the move,
// too.
func (s *target) againstPutBack(p *remediations.Policy) string {
	switch {
	case p == nil || p.Mode != remediations.ModeEnforce:
		return "the mode is observe, so nothing is put back"
	case !s.Ledger.KnowsMove(s.Node.Name, s.Record):
		return fmt.Sprintf("the ledger knows of no move by repair %s, so nothing is put back: check who wrote %s on node %s", s.Record.ID, remediations.LocationKey, s.Node.Name)
	}
	return ""
}

func (s *target) putBack(r *remediations.Record, now time.Time) lifecycle.Decision {
	r.Phase, r.Since, r.Deadline, r.Hold = remediations.PhaseActing, remediations.Instant(now), remediations.Instant(now.Add(remediations.ActingFor)), nil
	r.NameIntent()
	moves := r.Made()
	slices.Reverse(moves)
	return lifecycle.Decision{
		Verb: lifecycle.VerbIssue, Record: r, PutBack: moves, Policy: s.PolicyOf(r),
		Message: fmt.Sprintf("put the mesh leadership of location %s back as it was before repair %s: %s", r.Location, r.ID, r.Note),
	}
}

// restore makes the call again if this process has none in progress. The call may be repeated
// safely.
func (s *target) restore(now time.Time) lifecycle.Decision {
	r := s.Record
	c := s.Call
	if c != nil && c.IntentID != r.PutBackID() {
		c = nil
	}
	switch {
	case c != nil && c.Outcome == remediations.CallAccepted:
		return s.exhausted(r.Note+"; the leadership was put back as it was", true, now)
	case c != nil && c.Outcome != "":
		return s.fallBack(cmp.Or(c.Withheld, remediations.ReasonLeaderHeld), c.Why, now)
	case !now.Before(r.Deadline):
		return s.fallBack(remediations.ReasonLeaderHeld, "the call had no answer in time", now)
	case c != nil:
		return lifecycle.Decision{Verb: lifecycle.VerbWait, Recheck: r.Deadline, Policy: s.PolicyOf(r), Message: "the leadership is being put back"}
	case s.Ledger == nil:
		return lifecycle.Decision{Verb: lifecycle.VerbLook, Recheck: r.Deadline, Policy: s.PolicyOf(r), Message: fmt.Sprintf("the ledger is read again: %v", s.LedgerErr)}
	}
	if against := s.againstPutBack(s.PolicyOf(r)); against != "" {
		return s.exhausted(r.Note+"; "+against, false, now)
	}
	d := s.putBack(r.Clone(), now)
	d.Verb, d.Record, d.Recheck = lifecycle.VerbResume, nil, r.Deadline
	return d
}

// fallBack holds the repair after a failed undo. Drydock tries again later.
func (s *target) fallBack(reason remediations.Reason, why string, now time.Time) lifecycle.Decision {
	r := s.Record.Clone()
	message := fmt.Sprintf("the leadership of location %s could not be put back: %s; Drydock tries again", r.Location, text.Line(why, 200))
	r.Phase, r.Since, r.Deadline = remediations.PhasePending, remediations.Instant(now), remediations.Instant(r.Back.Add(remediations.BackFor))
	r.Hold = &remediations.Hold{Reason: reason, Message: message, Since: remediations.Instant(now)}
	return lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: reason, Message: message, Fleetwide: reason.Fleetwide(), Record: r, Policy: s.PolicyOf(r), Recheck: now.Add(lifecycle.LookAgain)}
}

// bindsUndo are the guards before an undo: people's marks on the node, and repairs of the node.
var bindsUndo = []remediations.Reason{remediations.ReasonExcluded, remediations.ReasonPaused, remediations.ReasonNodeLeaving, remediations.ReasonNodeUnderRepair}

// goBack makes the call again after a wait, unless a guard forbids it. At its deadline the repair
// ends.
func (s *target) goBack(c *lifecycle.Candidate) lifecycle.Decision {
	r := s.Record
	switch next := r.Since.Add(lifecycle.LookAgain); {
	case !c.Now.Before(r.Deadline):
		return s.exhausted(r.Note+"; the leadership could not be put back: "+r.Hold.Words(), false, c.Now)
	case s.Ledger == nil:
		return lifecycle.Decision{Verb: lifecycle.VerbLook, Policy: c.Policy, Message: fmt.Sprintf("the ledger is read again: %v", s.LedgerErr)}
	case s.againstPutBack(c.Policy) != "":
		return s.exhausted(r.Note+"; "+s.againstPutBack(c.Policy), false, c.Now)
	case c.Now.Before(next):
		return lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: c.Policy, Recheck: next, Message: "the next attempt to put the leadership back is not due yet"}
	}
	c.Repair, c.Own = r.ID, r.ID
	if reason, f := c.HeldBy(bindsUndo); f != nil {
		return s.Hold(c, r.Clone(), reason, f)
	}
	return s.putBack(r.Clone(), c.Now)
}

// leaveUnproven ends a repair that can show neither success nor the need for another move. It
// undoes nothing: even if the location as a whole does not answer, a part of it may answer because
// of the new leader.
func (s *target) leaveUnproven(now time.Time) lifecycle.Decision {
	r, why := s.Record, s.Record.Hold.Words()
	if missing := s.Missing(); !strings.Contains(why, missing) {
		why = missing + "; " + why
	}
	return s.exhausted(fmt.Sprintf("%s was not proven to cure the location%s: %s", r.Done, r.LeftAs(), why), false, now)
}

// exhausted keeps the record until a person resets the node. undone means that the leadership is as
// before.
func (s *target) exhausted(why string, undone bool, now time.Time) lifecycle.Decision {
	d, r := s.End(remediations.OutcomeExhausted, why, now), s.Record.Exhausted(now)
	r.Back = nil
	if undone {
		r.Undo, d.Ended.PutBack = nil, true
	}
	d.Record = r
	return d
}

// Rest waits for a person's reset. If another node leads now, the alerts move to its Node.
func (s *target) Rest(now time.Time) lifecycle.Decision {
	r := s.Record
	d := lifecycle.Decision{Verb: lifecycle.VerbRest, Message: fmt.Sprintf("repair %s of the leader of location %s has run out of attempts; set %s=true when the location is fixed", r.ID, r.Location, remediations.ResetKey)}
	if len(s.Alerts) == 0 {
		return d
	}
	if s.Elsewhere() != "" {
		d.Prune = append(d.Prune, remediations.KeysOf(s.Alerts)...)
		return d
	}
	return s.LookAgain(d, now, lifecycle.LookElsewhere)
}
