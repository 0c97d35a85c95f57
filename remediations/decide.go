package remediations

import (
	"fmt"
	"time"
)

const (
	// actingFor is how long a call may take, by far: a call still without an outcome then counts as perhaps done.
	actingFor = time.Minute
	// pendingFor bounds how long a repair may be held before it ends; if its alert still fires, a new one begins.
	pendingFor = 24 * time.Hour
	// refusedFor is the least time before the next attempt after a provider refused one.
	refusedFor = time.Minute
	// unconfirmedFor is how long an alert that no Alertmanager knows is kept: a post may overtake the poll.
	unconfirmedFor = time.Minute
	// lookFor is how fresh a look must be when a side effect rests on it. It is longer than a replica may take to
	// answer, and far below the 30 s of invariant 5, so that a silence made a moment ago is seen.
	lookFor = 10 * time.Second
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
			if leader := s.Journal.Leader; leader != nil && leader.Phase == Exhausted {
				d.Prune, d.Allow = []string{LeaderKey}, append(d.Allow, leader.Policy)
			}
			return d
		case (r == nil || r.Phase == Pending) && s.Journal.Leader != nil && s.Journal.Leader.Phase == Exhausted:
			return s.resetLeader()
		case (r == nil || r.Phase == Pending) && len(s.stoppedHere()) > 0:
			return Decision{Verb: Rest, Allow: s.stoppedHere(), Message: "the policies stopped here go on: " + joined(s.stoppedHere())}
		case (r == nil || r.Phase == Pending) && len(s.Journal.exhaustedSidecars()) > 0:
			return Decision{Verb: Rest, Prune: s.Journal.exhaustedSidecars(), Message: "the exhausted repairs of sidecars here were forgotten"}
		}
	}
	if r != nil && s.Node.Annotations[CancelKey] == r.ID && (r.Phase != Acting || !Registry[r.Step.Name].Once) && r.Phase != Exhausted {
		return s.cancel(now) // a call under way is not torn: it is cancelled when it is over
	}
	if d, ok := s.takeBack(now); ok {
		return d
	}
	switch {
	case s.Journal.Malformed != nil:
		return Decision{Verb: Keep, Reason: RecordMalformed, Message: fmt.Sprintf("%v; nothing is done here until somebody sets %s=true, which drops it", s.Journal.Malformed, ResetKey)}
	case r == nil || (r.Phase == Pending && r.Intent == nil):
		return s.start(now)
	case r.Phase == Acting && !Registry[r.Step.Name].Once:
		return s.work(now)
	case r.Phase == Acting:
		return s.settle(now)
	case r.Phase == Verifying && now.Before(r.Deadline) && (!r.beyond(now) || !s.Heartbeats.Agrees(now)):
		return s.await(now)
	case r.Phase == Exhausted:
		return Decision{Verb: Rest, Message: fmt.Sprintf("repair %s has run out of steps; set %s=true when the node is mended", r.ID, ResetKey)}
	}
	return s.proceed(now)
}

// start looks for an alert that no guard holds. A repair that is Pending and has not acted yet is no obstacle: it goes
// on if its own alert may, and gives way if only another one may.
func (s *State) start(now time.Time) Decision {
	r := s.Journal.Record
	if r != nil && !now.Before(r.Deadline) {
		return s.end(Cancelled, fmt.Sprintf("held for %s: %s", pendingFor, r.holdReason()), now)
	}
	if request := s.request(); request != "" {
		return s.asked(request, now)
	}
	var held *Decision
	for _, a := range s.mildestFirst() {
		p := s.Config.Policy(a.Policy)
		if s.stale() {
			d := s.look("asking Alertmanager about " + a.Name)
			d.AskStep = s.likelyStep(p, a, now)
			return d
		}
		if s.over(a, now) {
			continue
		}
		d := s.consider(p, a, "", now)
		if d.Verb != Keep {
			return d
		}
		if held == nil {
			held = &d
		}
	}
	switch {
	case held != nil:
		return *held
	case r != nil:
		return Decision{Verb: Drop, Message: "the alert is over before anything was done", Policy: s.policy()}
	}
	return Decision{Verb: Rest}
}

// consider asks the guards about one alert, or a person's request, that has not led to anything yet.
func (s *State) consider(p *Policy, a *Alert, request string, now time.Time) Decision {
	cause := Cause{Request: request}
	if a != nil {
		cause.Alert = a.Fingerprint
	}
	r := s.Journal.Record
	if r == nil || r.Cause != cause || r.Policy != p.Name {
		r = &Record{
			V: recordVersion, ID: s.NewID, Policy: p.Name, Cause: cause, Phase: Pending,
			Began: at(now), Since: at(now), Deadline: at(now.Add(pendingFor)),
		}
	}
	r = r.clone()
	if a != nil && r.After == nil {
		if cure := s.relapse(p, a, now); cure != nil {
			r.After = &After{ID: cure.Repair, Step: cure.Step, Steps: cure.Steps}
		}
	}
	c := &candidate{State: s, now: now, policy: p, subject: s.Node.Name, alert: a, request: request, verdict: s.verdictOn(cause)}
	step, ok := s.firstStepOf(p, r)
	switch {
	case ok:
		c.step, r.Step = step, step
		return s.act(c, r)
	case r.After != nil && s.begins(p, r):
		r.Step = r.After.Step
		return s.spentPlan(c, r)
	}
	return Decision{Verb: Keep, Reason: ProviderAbsent, Fleetwide: s.refusals(p) == "", Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation%s", p.Name, s.refusals(p))}
}

// verdictOn is what the Alertmanagers say of the repair's cause.
func (s *State) verdictOn(cause Cause) verdict {
	if cause.Request != "" {
		return s.Word.aboutNode(s.Node.Name, s.Config, s.ownSilence())
	}
	return s.Word.about(cause.Alert, s.Config, s.ownSilence())
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
		return s.end(Cancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !p.takes(s.Node) {
		return s.end(Cancelled, fmt.Sprintf("policy %s does not take this node any more: its labels have changed", r.Policy), now)
	}
	if s.stale() {
		return s.look("asking Alertmanager before the next step")
	}
	c := &candidate{State: s, now: now, policy: p, subject: s.Node.Name, alert: s.alert(r.Cause.Alert), request: r.Cause.Request, verdict: s.verdictOn(r.Cause), repair: r.ID, own: r.ID}
	var cure Decision
	if c.resolved() {
		var well bool
		if cure, well = s.recovered(p, now); cure.Verb == End {
			return cure
		} else if well && r.Phase == Pending && now.Before(r.Deadline) {
			return cure
		}
	}
	if r.Phase == Pending && !now.Before(r.Deadline) {
		return s.end(Cancelled, fmt.Sprintf("held for %s: %s", pendingFor, r.holdReason()), now)
	}
	if r.drained() && !s.Node.Spec.Unschedulable {
		return s.uncordoned("after its drain: pods may be back, and the plan would go on as if the node were empty", now)
	}
	if d, ok := r.afterWithheld(p, refusedFor, now); ok {
		return d
	}
	// A step that was issued is never issued again under the same attempt, whatever became of the plan since.
	step, ok := r.Step, true
	if (r.Intent.of(r, step) && !r.interrupted()) || !s.doable(p, step) {
		step, ok = s.nextStep(p, step)
	}
	next := r.clone()
	if r.Phase.InFlight() {
		next.Phase, next.Since, next.Deadline = Pending, at(now), at(now.Add(pendingFor))
	}
	if ok {
		c.step, next.Step = step, step
	} else if s.Ledger != nil { // without it act waits, as before any step
		if reason, f := c.hold(); f == nil || reason == Observing {
			if c.unwitnessed() {
				return s.lookOnce(c, Ask{Witness: true})
			}
			return s.exhaust(p, now)
		}
	}
	d := s.act(c, next)
	d.Well, d.Heard, d.Ask.Lease = cure.Well, cure.Heard, cure.Ask.Lease
	d.Ask.Witness = d.Ask.Witness || cure.Ask.Witness
	return d
}

// act issues the candidate's step, or holds it. pending is the record as it would be while held.
func (s *State) act(c *candidate, pending *Record) Decision {
	c.own = pending.ID
	if s.Ledger == nil {
		if reason, f := s.withoutLedger(c.now); f != nil {
			return s.held(Decision{Policy: c.policy}, c, pending, reason, f)
		}
		return s.readLedger(c.policy)
	}
	d := Decision{Policy: c.policy}
	reason, f := c.hold()
	beats := s.Heartbeats == nil || c.now.Sub(s.Heartbeats.ReadAt) > lookFor
	if reason == Observing && c.unwitnessed() { // what would be done says so only where it would be
		return s.lookOnce(c, Ask{Witness: true})
	}
	if f == nil {
		survey, trouble := s.surveyOf(c), s.trouble(c)
		ask := Ask{Alerts: c.now.Sub(s.LookSince) > lookFor, Heartbeats: beats && c.remediation().Disruptive, Survey: survey == nil, Witness: c.unwitnessed()}
		switch {
		case trouble != nil: // it stands, and is told once, while the provider is asked again
			d.Ask.Survey, d.AskStep = survey == nil, c.ask()
			reason, f = ProviderAbsent, trouble
		case ask.Heartbeats && s.leasesLost(c.now) != nil:
			reason, f, d.Ask.Heartbeats = Blind, s.leasesLost(c.now), true
		case ask != (Ask{}):
			return s.lookOnce(c, ask)
		default:
			return s.issue(c, pending)
		}
	}
	if f.pass {
		if over := s.passOver(c, pending, reason, f); over != nil {
			return *over
		}
	}
	d.Ask.Heartbeats = d.Ask.Heartbeats || (reason == Blind && beats && s.Heartbeats.Blind() != "")
	d.Ask.Witness = reason == NotWitnessed && c.witnessDue()
	return s.held(d, c, pending, reason, f)
}

// held is the decision that something holds the candidate.
func (s *State) held(d Decision, c *candidate, pending *Record, reason Reason, f *finding) Decision {
	d.Fleetwide = f.fleetwide || reason.Fleetwide()
	d.Verb, d.Reason, d.Message = Keep, reason, f.message
	if f.until.After(c.now) {
		d.Recheck = f.until
	}
	hold := &Hold{Reason: reason, Message: clip(f.message, 400), Since: at(c.now)}
	if !f.until.IsZero() {
		until := at(f.until)
		hold.Until = &until
	}
	was := s.Journal.Record
	moved := was != nil && was.Phase != pending.Phase
	// A person's request is consumed with the record of it, whatever holds it.
	moved = moved || (c.request != "" && (was == nil || was.ID != pending.ID))
	if moved || (!d.Fleetwide && (was == nil || was.ID != pending.ID || !was.Hold.same(hold))) {
		d.Record = pending.clone()
		d.Record.Hold, d.Record.Also = hold, s.also(pending)
	}
	return d
}

// lookOnce asks for what the side effect rests on and is not known, or too old.
func (s *State) lookOnce(c *candidate, ask Ask) Decision {
	return Decision{Verb: Look, Ask: ask, AskStep: c.ask(), Policy: c.policy, Message: "looking once more before the side effect"}
}

// policy is that of the repair on record.
func (s *State) policy() *Policy { return s.Config.PolicyOf(s.Journal.Record.Policy, s.Node) }

// stale says that the Alertmanagers were last asked before this node wanted to know.
func (s *State) stale() bool {
	return s.LookSince.IsZero() || s.Word == nil || s.Word.AskedAt.Before(s.LookSince)
}

func (s *State) look(why string) Decision {
	return Decision{Verb: Look, Ask: Ask{Alerts: true}, Message: why}
}

func (s *State) alert(fingerprint string) *Alert {
	for i := range s.Journal.Alerts {
		if s.Journal.Alerts[i].Fingerprint == fingerprint {
			return &s.Journal.Alerts[i]
		}
	}
	return nil
}

// at is a time as a record holds it.
func at(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
