package remediations

import (
	"fmt"
	"time"
)

const (
	// ActingFor is how long a call may take, by far: a call still without an outcome then counts as perhaps done.
	ActingFor = time.Minute
	// PendingFor bounds how long a repair may be held before it ends; if its alert still fires, a new one begins.
	PendingFor = 24 * time.Hour
	// refusedFor is the least time before the next attempt after a provider refused one.
	refusedFor = time.Minute
	// UnconfirmedFor is how long an alert that no Alertmanager knows is kept: a post may overtake the poll.
	UnconfirmedFor = time.Minute
	// LookFor is how fresh a look must be when a side effect rests on it. It is longer than a replica may take to
	// answer, and far below the 30 s of invariant 5, so that a silence made a moment ago is seen.
	LookFor = 10 * time.Second
	// leaseAgain is how soon a lease that was found stale is read again.
	leaseAgain = 5 * time.Second
	// OutageFor is how long the ledger or the leases may be missing before that holds repairs, and people are told.
	OutageFor = time.Minute
)

// Decide says what is to be done about one node now. It is pure: the same state and time give the same decision.
func Decide(s *State, now time.Time) Decision {
	right, wrong := s.clamp(now)
	trusts, ask := s.trusts(now)
	if wrong && trusts {
		return right
	}
	d := decide(s, now)
	d.Ask.Heartbeats = d.Ask.Heartbeats || (wrong && ask)
	s.consume(&d, now)
	s.prune(&d, now)
	s.remember(&d)
	s.relapsed(&d)
	return d
}

func decide(s *State, now time.Time) Decision {
	r := s.Journal.Record
	// A reset is done as a whole or not at all: without the ledger it waits.
	if _, ok := s.Node.Annotations[ResetKey]; ok && s.Ledger != nil && ParseReset(s.Node.Annotations[ResetKey]) == nil {
		switch {
		case s.Journal.Malformed != nil:
			return s.dropMalformed(now)
		case r != nil && r.Phase == Exhausted:
			d := Decision{Verb: Reset, Message: fmt.Sprintf("the exhausted repair %s was forgotten", r.ID), Allow: []string{r.Policy}}
			d.undo(r)
			if left := s.leave(&d, r.Undo, now); left != nil {
				d.LeftOf, d.Left = r.ID, left
			}
			if leader := s.Journal.location(); leader != nil && leader.Phase == Exhausted {
				d.Prune, d.Allow = []string{LocationKey}, append(d.Allow, leader.Policy)
			}
			return d
		case (r == nil || r.Phase == Pending) && s.Journal.location() != nil && s.Journal.location().Phase == Exhausted:
			return s.resetLocation()
		case (r == nil || r.Phase == Pending) && len(s.stoppedHere()) > 0:
			return Decision{Verb: Rest, Allow: s.stoppedHere(), Message: "the policies stopped here go on: " + joined(s.stoppedHere())}
		case (r == nil || r.Phase == Pending) && len(s.Journal.exhaustedBeside()) > 0:
			return Decision{Verb: Rest, Prune: s.Journal.exhaustedBeside(), Message: "the exhausted repairs of sidecars here were forgotten"}
		}
	}
	if d, ok := s.takeBack(now); ok && !r.cancelledOn(s.Node) {
		return d
	}
	if s.Journal.Malformed != nil {
		return Decision{Verb: Keep, Reason: RecordMalformed, Message: fmt.Sprintf("%v; nothing is done here until somebody sets %s=true, which drops it", s.Journal.Malformed, ResetKey)}
	}
	return live(nodeTarget{s}, now)
}

// consider asks the guards about one alert, or a person's request, that has not led to anything yet.
func (s *State) consider(p *Policy, a *Alert, request string, now time.Time) Decision {
	cause := Cause{Request: request}
	if a != nil {
		cause.Alert = a.Fingerprint
	}
	r := s.Journal.Record
	if r == nil || r.Cause != cause || r.Policy != p.Name {
		r = s.newRecord(p, cause, now)
	}
	r = r.Clone()
	if a != nil && r.After == nil {
		if cure := s.relapse(p, a, now); cure != nil {
			r.After = &After{ID: cure.Repair, Step: cure.Step, Steps: cure.Steps}
		}
	}
	c := &Candidate{State: s, Now: now, Policy: p, Subject: s.Node.Name, Alert: a, request: request, Verdict: s.verdictOn(cause)}
	step, ok := s.firstStepOf(p, r)
	switch {
	case ok:
		c.Step, r.Step = step, step
		return act(nodeTarget{s}, c, r)
	case r.After != nil && s.begins(p, r):
		r.Step = r.After.Step
		return s.spentPlan(c, r)
	}
	return Decision{Verb: Keep, Reason: ProviderAbsent, Fleetwide: s.refusals(p) == "", Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation%s", p.Name, s.refusals(p))}
}

// verdictOn is what the Alertmanagers say of the repair's cause.
func (s *State) verdictOn(cause Cause) Verdict {
	if cause.Request != "" {
		return s.Word.aboutNode(s.Node.Name, s.Config, s.ownSilence())
	}
	return s.Word.About(cause.Alert, s.Config, s.ownSilence())
}

func (s *State) ownSilence() string {
	if r := s.Journal.Record; r != nil {
		return r.Silence
	}
	return ""
}

// proceed goes on with a repair whose last attempt is over: it is Pending between attempts, or its proof did not come
// in time.
func (s *State) proceed(now time.Time) Decision {
	r := s.Journal.Record
	p := s.policy()
	if p == nil || p.Mode == ModeOff {
		return s.End(Cancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !p.takes(s.Node) {
		return s.End(Cancelled, fmt.Sprintf("policy %s does not take this node any more: its labels have changed", r.Policy), now)
	}
	if s.Stale() {
		return s.Look("asking Alertmanager before the next step")
	}
	c := &Candidate{State: s, Now: now, Policy: p, Subject: s.Node.Name, Alert: s.AlertBy(r.Cause.Alert), request: r.Cause.Request, Verdict: s.verdictOn(r.Cause), Repair: r.ID, Own: r.ID}
	var cure Decision
	if c.Resolved() {
		var well bool
		if cure, well = cured(nodeTarget{s}, p, now); cure.Verb == End {
			return cure
		} else if well && r.Phase == Pending && now.Before(r.Deadline) {
			return cure
		}
	}
	if r.Phase == Pending && !now.Before(r.Deadline) {
		return s.End(Cancelled, fmt.Sprintf("held for %s: %s", PendingFor, r.Hold.Words()), now)
	}
	if r.drained() && !s.Node.Spec.Unschedulable {
		return s.uncordoned("after its drain: pods may be back, and the plan would go on as if the node were empty", now)
	}
	if d, ok := r.AfterWithheld(p, refusedFor, now); ok {
		return d
	}
	// A step that was issued is never issued again under the same attempt, whatever became of the plan since.
	step, ok := r.Step, true
	if (r.Intent.Of(r, step) && !r.interrupted()) || !s.Doable(p, step) {
		step, ok = s.NextStep(p, step)
	}
	next := r.Between(now)
	if ok {
		c.Step, next.Step = step, step
	} else if s.Ledger != nil { // without it act waits, as before any step
		if reason, f := c.hold(); f == nil || reason == Observing {
			if c.unwitnessed() {
				return s.lookOnce(c, Ask{Witness: true})
			}
			return s.exhaust(p, now)
		}
	}
	d := act(nodeTarget{s}, c, next)
	d.Well, d.Heard, d.Ask.Lease = cure.Well, cure.Heard, cure.Ask.Lease
	d.Ask.Witness = d.Ask.Witness || cure.Ask.Witness
	return d
}

// lookOnce asks for what the side effect rests on and is not known, or too old.
func (s *State) lookOnce(c *Candidate, ask Ask) Decision {
	return Decision{Verb: Look, Ask: ask, AskStep: c.ask(), Policy: c.Policy, Message: "looking once more before the side effect"}
}

// policy is that of the repair on record.
func (s *State) policy() *Policy { return s.Config.PolicyOf(s.Journal.Record.Policy, s.Node) }

// Stale says that the Alertmanagers were last asked before this node wanted to know.
func (s *State) Stale() bool {
	return s.LookSince.IsZero() || s.Word == nil || s.Word.AskedAt.Before(s.LookSince)
}

func (s *State) Look(why string) Decision {
	return Decision{Verb: Look, Ask: Ask{Alerts: true}, Message: why}
}

func (s *State) AlertBy(fingerprint string) *Alert {
	for i := range s.Journal.Alerts {
		if s.Journal.Alerts[i].Fingerprint == fingerprint {
			return &s.Journal.Alerts[i]
		}
	}
	return nil
}

// Instant is a time as a record holds it.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
