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
	// UnconfirmedFor is how long an alert that no Alertmanager knows is kept: a post may overtake the poll.
	UnconfirmedFor = time.Minute
	// LookFor is how fresh a look must be when a side effect rests on it. It is longer than a replica may take to
	// answer, and far below the 30 s of invariant 5, so that a silence made a moment ago is seen.
	LookFor = 10 * time.Second
	// OutageFor is how long the ledger or the leases may be missing before that holds repairs, and people are told.
	OutageFor = time.Minute
)

// Live goes on with the target's repair, from the phase that it is in, or begins one.
func (t *Target) Live(now time.Time) Decision {
	r := t.Record
	switch {
	case t.Cancelled():
		d := t.End(Cancelled, fmt.Sprintf("somebody set %s%s", CancelKey, r.LeftAs()), now)
		d.Ended.By = ByPerson
		return d
	case r.observes() && !t.enforces(t.PolicyOf(r)):
		return t.observe(now)
	case r == nil || t.untouched(r):
		return t.begin(now)
	case r.Phase == Acting:
		return t.acting(now)
	case r.Phase == Verifying && now.Before(r.Deadline) && !t.overdue(r, now):
		return t.await(now)
	case r.Phase == Exhausted:
		return t.Rest(now)
	}
	return t.proceed(now)
}

// Cancelled says that a person cancelled the repair by what is on the Node. A call under way is not torn: it is cancelled when
// it is over.
func (t *Target) Cancelled() bool {
	r := t.Record
	return r != nil && t.Node.Annotations[CancelKey] == r.ID && r.Phase != Exhausted && (r.Phase != Acting || r.Back != nil || !t.Config.Remediation(r.Step.Name).Once)
}

// begin looks for an alert that no guard holds. A repair that is Pending and has not acted yet is no obstacle: it goes on if
// its own alert may, and gives way if only another one may.
func (t *Target) begin(now time.Time) Decision {
	r := t.Record
	if r != nil && !now.Before(r.Deadline) {
		return t.End(Cancelled, fmt.Sprintf("held for %s: %s", PendingFor, r.Hold.Words()), now)
	}
	if d, ok := t.first(now); ok {
		return d
	}
	var held, said *Decision
	for _, a := range t.causes() {
		p := t.Config.Policy(a.Policy)
		if p == nil || p.Mode == ModeOff {
			continue
		}
		if t.Stale() {
			d := t.Look("asking Alertmanager about " + a.Name)
			d.AskStep = t.likelyStep(p, a, now)
			return d
		}
		if t.Over(a, now) {
			continue
		}
		if d, ok := t.saidAlready(p, a, now); ok {
			if said == nil {
				said = &d
			}
			continue
		}
		d := t.consider(p, a, now)
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
	case r.observes():
		return t.observed("", now)
	case r != nil:
		return Decision{Verb: Drop, Message: "the alert is over before anything was done", Policy: t.PolicyOf(r)}
	case said != nil && t.Elsewhere != nil && t.Elsewhere() != "":
		return t.leave(t.Elsewhere(), now)
	case said != nil:
		return *said
	}
	return Decision{Verb: Rest}
}

// Act issues the candidate's step, or holds it. pending is the record as it would be while held.
func (t *Target) Act(c *Candidate, pending *Record) Decision {
	c.Own = pending.ID
	if t.Ledger == nil {
		if reason, f := t.WithoutLedger(c.Now); f != nil {
			return t.HoldBack(c, pending, reason, f)
		}
		return Decision{Verb: Look, Policy: c.Policy, Message: fmt.Sprintf("the ledger is read again: %v", t.LedgerErr)}
	}
	if t.Asking != nil {
		t.Asking(c)
	}
	reason, f := c.HeldBy(nil)
	if f == nil || reason == Observing {
		instead, against, why := t.examine(c, pending, f != nil)
		switch {
		case instead != nil:
			return *instead
		case why != nil:
			reason, f = against, why
		default:
			f = observing(c) // which may say more by now
		}
	}
	if f != nil {
		return t.HoldBack(c, pending, reason, f)
	}
	ask := Ask{Alerts: c.Now.Sub(t.LookSince) > LookFor, Heartbeats: c.Remediation().Disruptive && t.Uncounted(c.Now)}
	step := t.asks(c, &ask)
	if f := t.leasesLost(c.Now); ask.Heartbeats && f != nil {
		d := t.HoldBack(c, pending, Blind, f)
		d.Ask.Heartbeats = true
		return d
	}
	if ask != (Ask{}) {
		return Decision{Verb: Look, Ask: ask, AskStep: step, Policy: c.Policy, Message: "looking once more before the side effect"}
	}
	return t.issue(c, pending)
}

// Uncounted says that the leases were counted too long ago to act upon.
func (s *State) Uncounted(now time.Time) bool {
	return s.Heartbeats == nil || now.Sub(s.Heartbeats.ReadAt) > LookFor
}

// issue puts the candidate's step on record as an intent, which comes before its side effect.
func (t *Target) issue(c *Candidate, pending *Record) Decision {
	r, now := pending.Clone(), c.Now
	id := nextIntentID(r, c.Step, now)
	r.Phase, r.Step, r.Hold, r.Note = Acting, c.Step, nil, ""
	r.Since, r.Deadline = Instant(now), Instant(now.Add(ActingFor))
	// Judged by the intent: a plan may repeat a step, and each is an attempt of its own. A drain that goes on is none.
	if !r.Intent.Of(r, c.Step) {
		r.Done = append(r.Done, c.Step.String())
	}
	r.Intent = &Intent{ID: id, At: Instant(now)}
	d := Decision{Verb: Issue, Policy: c.Policy, Record: r}
	t.Intend(c, pending, &d)
	return d
}

// Settle moves the repair on from Acting once its call is over.
func (t *Target) Settle(now time.Time) Decision {
	old, call := t.Record, t.Call
	p := t.PolicyOf(old)
	outcome, why, underWay := call.answer(old.Intent.ID, old.Deadline, now)
	if underWay {
		return Decision{Verb: Wait, Recheck: old.Deadline, Policy: p, Message: "the call is under way"}
	}
	if call.withheld(old, now) {
		return old.giveBack(call, p, t.apart(), now)
	}
	r := old.Clone()
	d := Decision{Verb: Verify, Record: r, Policy: p}
	r.Phase, r.Since = Verifying, Instant(now)
	r.Intent.Outcome, r.Intent.Why = outcome, clip(why, 300)
	if call != nil && call.IntentID == old.Intent.ID {
		if call.Silence != "" {
			r.Silence = call.Silence
		}
		if call.Stop {
			d.Stop = clip(why, 300)
		}
	}
	r.Deadline = Instant(r.Intent.At.Add(t.Config.WaitOf(p, r.Step)))
	switch outcome {
	case CallRefused:
		// Never later than the proof of a call could take: a clock that jumped would leave it waiting for as long.
		r.Deadline = Earlier(r.Deadline, Instant(now.Add(t.apart())))
	case CallAccepted:
		why = "accepted"
	case CallUnknown:
	}
	d.Message = fmt.Sprintf("%s: %s; %s until %s", t.attempt(r), why, t.awaits(), r.Deadline.Format(time.RFC3339))
	return d
}

// ended is the history's entry of a repair that is over; its kind adds what is its own.
func (r *Record) ended(o Outcome, why string, now time.Time) *Entry {
	return &Entry{
		ID: r.ID, Policy: r.Policy, Outcome: o, Steps: append([]string{}, r.Done...), Began: r.Began, Ended: Instant(now),
		Cause: r.Cause.Alert, Why: clip(why, 300),
	}
}

// Exhausted is the record of a plan that has run out, which stays until a person has looked.
func (r *Record) Exhausted(now time.Time) *Record {
	c := r.Clone()
	c.Phase, c.Since, c.Deadline, c.Hold, c.Note = Exhausted, Instant(now), time.Time{}, nil, ""
	c.NameIntent()
	return c
}

// NewHold is what the record says of the guard that holds it.
func NewHold(reason Reason, f *Finding, now time.Time) *Hold {
	h := &Hold{Reason: reason, Message: clip(f.Message, 400), Since: Instant(now)}
	if !f.Until.IsZero() {
		until := Instant(f.Until)
		h.Until = &until
	}
	return h
}

// withoutStep is the decision that nothing of the policy's plan can be done here.
func withoutStep(p *Policy) Decision {
	return Decision{Verb: Keep, Reason: ProviderAbsent, Fleetwide: true, Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation", p.Name)}
}

// Held is the decision that something holds the candidate, of which nothing need be written.
func Held(c *Candidate, reason Reason, f *Finding) Decision {
	d := Decision{Verb: Keep, Reason: reason, Message: f.Message, Policy: c.Policy, Fleetwide: f.Fleetwide || reason.Fleetwide()}
	if f.Until.After(c.Now) {
		d.Recheck = f.Until
	}
	return d
}

// Holds says that the record must say by which guard it is held: its phase is over, or that is news and not all repairs' alike. What
// is alike is written where the record names a guard of its own, which holds it no more, and no time at which that ends: nobody may
// read it as the present. In a storm most records have such a time, and are left alone.
func (r *Record) Holds(pending *Record, hold *Hold, fleetwide bool) bool {
	if r != nil && r.Phase != pending.Phase {
		return true
	}
	if fleetwide {
		return r != nil && r.ID == pending.ID && r.Hold != nil && r.Hold.Until == nil && !r.Hold.Reason.Fleetwide() && r.Hold.Reason != hold.Reason
	}
	return r == nil || r.ID != pending.ID || !r.Hold.same(hold)
}

// NewRecord is the record of a repair that nothing was done for yet.
func (s *State) NewRecord(p *Policy, cause Cause, now time.Time) *Record {
	return &Record{
		V: RecordVersion, ID: s.NewID, Policy: p.Name, Cause: cause, Phase: Pending, Began: Instant(now), Since: Instant(now), Deadline: Instant(now.Add(PendingFor)),
	}
}

// Between is the record between two attempts.
func (r *Record) Between(now time.Time) *Record {
	next := r.Clone()
	if r.Phase != Pending {
		next.Phase, next.Since, next.Deadline = Pending, Instant(now), Instant(now.Add(PendingFor))
	}
	return next
}
