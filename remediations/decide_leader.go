package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// leaderAgain is how soon a location whose leader cannot be moved is looked at again, leaderElsewhere how soon one whose
	// node is held is looked for elsewhere.
	leaderAgain     = 15 * time.Second
	leaderElsewhere = time.Minute
	// leaderProof is how soon one whose leader was moved is looked at again.
	leaderProof = 5 * time.Second
	// backFor bounds how long moves are being put back, with all that holds it.
	backFor = time.Hour
)

// LeaderState is all that DecideLeader may know. Call, NewID, WellSince and WellHeard of the State are the leader's own.
type LeaderState struct {
	*State
	Leader
	// Sight is what was last seen of the location; nil: nothing yet.
	Sight *LeaderSight
}

// DecideLeader says what is to be done about the leader of one location of the mesh, on the Node that led when that was
// found out. It is pure, as Decide is, and asks the same guards, but for those that speak of the machine: a leader that
// does not forward makes many nodes look ill, and its node is repaired by an alert of its own.
func DecideLeader(s *LeaderState, now time.Time) Decision {
	if s.Journal.Malformed != nil {
		return Decision{Verb: Rest} // Decide says so, for the whole node
	}
	right, wrong := s.clampOwn(now)
	trusts, ask := s.trusts(now)
	if wrong && trusts {
		return right
	}
	d := s.decide(now)
	d.Ask.Heartbeats = d.Ask.Heartbeats || (wrong && ask)
	s.consumeOwn(&d)
	s.pruneOwn(&d, now)
	return d
}

func (s *LeaderState) decide(now time.Time) Decision {
	r := s.Record
	switch {
	case r != nil && s.Node.Annotations[CancelKey] == r.ID && (r.Phase != Acting || r.Back != nil) && r.Phase != Exhausted:
		d := s.end(Cancelled, fmt.Sprintf("somebody set %s%s", CancelKey, r.leftAs()), now)
		d.Ended.By = ByPerson
		return d
	case r == nil || (r.Phase == Pending && len(r.Moves) == 0):
		return s.start(now)
	case r.Phase == Acting && r.Back != nil:
		return s.restore(now)
	case r.Phase == Acting:
		return s.settle(now)
	case r.Phase == Verifying && now.Before(r.Deadline) && !r.beyond(now):
		return s.await(now)
	case r.Phase == Exhausted:
		return s.rest(now)
	}
	return s.proceed(now)
}

// clampOwn is State.clamp for the record of the leader.
func (s *LeaderState) clampOwn(now time.Time) (Decision, bool) {
	r := s.Record
	if r == nil || r.Phase == Exhausted || (r.Phase == Acting && r.Back == nil) {
		return Decision{}, false
	}
	c, wrong := r.clamped(s.policyOf(r), now)
	return Decision{Verb: Wait, Record: c, Policy: s.policyOf(r), Recheck: now, Message: "times from the future on record are set to now"}, wrong
}

// consumeOwn takes the keys by which people speak of a repair, where this one is it. All others are Decide's.
func (s *LeaderState) consumeOwn(d *Decision) {
	a := s.Node.Annotations
	if d.Ended != nil && d.Ended.By == ByPerson {
		d.Consume = append(d.Consume, CancelKey)
	}
	if d.Verb == Issue && a[ApproveKey] == d.Record.ID {
		d.Consume = append(d.Consume, ApproveKey)
	}
}

// pruneOwn drops the alerts about leaders that are over and that the repair does not refer to any more.
func (s *LeaderState) pruneOwn(d *Decision, now time.Time) {
	if s.stale() || d.Verb == Look {
		return
	}
	kept := s.Record
	switch {
	case d.Record != nil:
		kept = d.Record
	case d.Verb == End || d.Verb == Drop:
		kept = nil
	}
	for i := range s.Journal.Alerts {
		a := &s.Journal.Alerts[i]
		if _, ours := s.Config.locationOf(*a); !ours || slices.Contains(d.Prune, a.Key()) {
			continue
		}
		if (kept == nil || kept.Phase == Exhausted || kept.Cause.Alert != a.Fingerprint) && s.over(a, now) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

// start looks for an alert that no guard holds, as for a node.
func (s *LeaderState) start(now time.Time) Decision {
	r := s.Record
	if r != nil && !now.Before(r.Deadline) {
		return s.end(Cancelled, fmt.Sprintf("held for %s: %s", pendingFor, r.holdReason()), now)
	}
	if r != nil {
		if d, ok := r.afterWithheld(s.policyOf(r), leaderAgain, now); ok {
			return d
		}
	}
	var held *Decision
	for i := range s.Alerts {
		a := &s.Alerts[i]
		p := s.Config.Policy(a.Policy)
		if p == nil || p.Mode == ModeOff {
			continue
		}
		if s.stale() {
			return s.look("asking Alertmanager about " + a.Name)
		}
		if s.over(a, now) {
			continue
		}
		if d := s.consider(p, a, now); d.Verb != Keep {
			return d
		} else if held == nil {
			held = &d
		}
	}
	switch {
	case held != nil:
		return *held
	case r != nil:
		return Decision{Verb: Drop, Message: "the alert is over before anything was done", Policy: s.Config.Policy(r.Policy)}
	}
	return Decision{Verb: Rest}
}

func (s *LeaderState) consider(p *Policy, a *Alert, now time.Time) Decision {
	step, ok := s.firstStep(p)
	if !ok {
		return Decision{Verb: Keep, Reason: ProviderAbsent, Fleetwide: true, Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation", p.Name)}
	}
	r := s.Record
	if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name {
		r = &Record{
			V: recordVersion, ID: s.NewID, Policy: p.Name, Cause: Cause{Alert: a.Fingerprint}, Location: s.Location, Phase: Pending,
			Step: step, Began: at(now), Since: at(now), Deadline: at(now.Add(pendingFor)),
		}
	}
	return s.act(s.candidate(p, a, a.Fingerprint, step, now), r)
}

func (s *LeaderState) candidate(p *Policy, a *Alert, fingerprint string, step StepRef, now time.Time) *candidate {
	return &candidate{State: s.State, now: now, policy: p, step: step, alert: a, kind: KindLocation, location: s.Location, verdict: s.Word.about(fingerprint, s.Config, "")}
}

// act issues the candidate's step, or holds it. pending is the record as it would be while held.
func (s *LeaderState) act(c *candidate, pending *Record) Decision {
	c.own = pending.ID
	if s.Ledger == nil {
		if reason, f := s.withoutLedger(c.now); f != nil {
			return s.hold(c, pending, reason, f)
		}
		return s.readLedger(c.policy)
	}
	d := Decision{Policy: c.policy}
	reason, f := c.hold()
	if f == nil || reason == Observing {
		if s.unseen(c.now, leaderAgain) {
			return s.see("looking at who leads the location", c.policy)
		}
		if s.elsewhere() {
			return s.leave(c.now)
		}
		against, why := s.against(c)
		if why == nil {
			c.move, against, why = s.successor(c)
			c.subject = fmt.Sprintf("%s to %s in location %s", c.move.From, c.move.To, c.location)
		}
		switch {
		case why != nil && against == "":
			return s.exhaust(c, why.message)
		case why != nil:
			reason, f = against, why
		case f != nil:
			f = observing(c)
		}
	}
	beats := s.Heartbeats == nil || c.now.Sub(s.Heartbeats.ReadAt) > lookFor
	if f == nil {
		d.Ask = Ask{Alerts: c.now.Sub(s.LookSince) > lookFor, Heartbeats: beats, Sighting: s.unseen(c.now, lookFor)}
		if f := s.leasesLost(c.now); f != nil && beats {
			d = s.hold(c, pending, Blind, f)
			d.Ask.Heartbeats = true
			return d
		}
		if d.Ask != (Ask{}) {
			d.Verb, d.Message = Look, "looking once more before the side effect"
			return d
		}
		return s.issue(c, pending)
	}
	return s.hold(c, pending, reason, f)
}

func (s *LeaderState) issue(c *candidate, pending *Record) Decision {
	r, m := pending.clone(), c.move
	id := nextIntentID(r, c.step, c.now)
	r.Phase, r.Step, r.Hold = Acting, c.step, nil
	r.Since, r.Deadline = at(c.now), at(c.now.Add(actingFor))
	r.Done = append(r.Done, c.step.String())
	r.Moves = append(r.Moves, m)
	r.Undo = append(r.Undo, Undo{Kind: UndoLeader, Key: m.To, At: at(c.now)})
	r.Intent = &Intent{ID: id, At: at(c.now), UID: string(s.Node.UID), Successor: m.To}
	return Decision{
		Verb: Issue, Policy: c.policy, Record: r,
		Message: fmt.Sprintf("move the mesh leadership of location %s from %s to %s (attempt %d) %s", m.Location, m.From, m.To, c.step.Attempt, c.by()),
	}
}

// settle moves the repair on once its call is over, as for a node.
func (s *LeaderState) settle(now time.Time) Decision {
	r := s.Record.clone()
	outcome, why, underWay := s.Call.answer(r.Intent.ID, r.Deadline, now)
	if underWay {
		return Decision{Verb: Wait, Recheck: r.Deadline, Policy: s.policyOf(r), Message: "the call is under way"}
	}
	if s.Call.withheld(r, now) {
		return r.giveBack(s.Call, s.policyOf(r), leaderAgain, now)
	}
	r.Phase, r.Since = Verifying, at(now)
	r.Intent.Outcome, r.Intent.Why = outcome, clip(why, 300)
	wait := s.policyOf(r).waitOf(r.Step)
	r.Deadline = at(r.Intent.At.Add(wait))
	if outcome == CallRefused {
		r.Deadline = at(now.Add(min(wait, leaderAgain)))
	}
	if outcome == CallAccepted {
		why = "accepted"
	}
	return Decision{Verb: Verify, Record: r, Policy: s.policyOf(r), Message: fmt.Sprintf("%s of location %s to %s: %s; waiting for proof until %s", r.Step, r.Location, r.Intent.Successor, why, r.Deadline.Format(time.RFC3339))}
}

func (s *LeaderState) policyOf(r *Record) *Policy { return s.Config.Policy(r.Policy) }

// end closes the repair. What it moved stays moved: only a plan that has run out puts it back.
func (s *LeaderState) end(o Outcome, why string, now time.Time) Decision {
	r := s.Record
	return Decision{
		Verb: End, Message: why, Policy: s.policyOf(r),
		Ended: &Entry{
			ID: r.ID, Target: strings.TrimPrefix(LeaderKey, RepairPrefix), Location: r.Location, Moves: slices.Clone(r.Moves), Policy: r.Policy,
			Outcome: o, Steps: append([]string{}, r.Done...), Began: r.Began, Ended: at(now), Cause: r.Cause.Alert, Why: clip(why, 300),
		},
	}
}
