package remediations

import (
	"fmt"
	"time"
)

// nodeTarget is the node itself.
type nodeTarget struct{ *State }

func (t nodeTarget) record() *Record { return t.Journal.Record }

func (t nodeTarget) PolicyOf(r *Record) *Policy { return t.Config.PolicyOf(r.Policy, t.Node) }

func (t nodeTarget) causes() []*Alert { return t.mildestFirst() }

func (t nodeTarget) untouched(r *Record) bool { return r.Phase == Pending && r.Intent == nil }

// first is what a person asked for.
func (t nodeTarget) first(now time.Time) (Decision, bool) {
	if request := t.request(); request != "" {
		return t.asked(request, now), true
	}
	return Decision{}, false
}

func (t nodeTarget) consider(p *Policy, a *Alert, now time.Time) Decision {
	return t.State.consider(p, a, "", now)
}

// examine asks whether one provider carries out the step on this node, and what it has against it. That stands, and is told once, while the provider is asked again.
func (t nodeTarget) examine(c *Candidate, pending *Record, observing bool) (*Decision, Reason, *Finding) {
	if f := c.unserved(); f != nil {
		return nil, ProviderAbsent, f
	}
	if observing {
		if c.unwitnessed() { // what would be done says so only where it would be
			d := t.lookOnce(c, Ask{Witness: true})
			return &d, "", nil
		}
		return nil, "", nil
	}
	trouble := t.trouble(c)
	if trouble == nil {
		return nil, "", nil
	}
	if trouble.pass {
		if over := t.passOver(c, pending, ProviderAbsent, trouble); over != nil {
			return over, "", nil
		}
	}
	d := t.keep(c, pending, ProviderAbsent, trouble)
	d.Ask.Survey, d.AskStep = t.surveyOf(c) == nil, c.ask()
	return &d, "", nil
}

func (t nodeTarget) asks(c *Candidate, ask *Ask) StepOn {
	ask.Survey, ask.Witness = t.surveyOf(c) == nil, c.unwitnessed()
	return c.ask()
}

func (t nodeTarget) intend(c *Candidate, pending *Record, d *Decision) {
	n, r, taken := t.Node, d.Record, pending.taken(c.Step)
	r.Also = t.also(r)
	r.Intent.BootID, r.Intent.UID, r.Intent.ProviderID = n.Status.NodeInfo.BootID, string(n.UID), n.Spec.ProviderID
	if t.Config.several(c.Step.Name) {
		r.Intent.Provider = c.provider()
	}
	r.Intent.Before, r.Intent.SpentSeconds = t.Survey.before(c.ask()), int(taken.Seconds())
	if v := t.surveyOf(c); v.Evidence != "" {
		r.Evidence = EvidenceOf(v.Evidence)
	}
	d.Signs = c.signs()
	attempt := ""
	if c.Remediation().Once {
		attempt = fmt.Sprintf(" (attempt %d)", c.Step.Attempt)
	} else {
		r.Deadline = Instant(c.Now.Add(c.Policy.Plan[c.Step.Index].Timeout - taken))
		if !n.Spec.Unschedulable {
			d.Cordon = true
			r.Undo = append(r.Undo, Undo{Kind: UndoCordon, At: Instant(c.Now)})
		}
	}
	d.Message = fmt.Sprintf("%s %s%s%s %s", c.Remediation().Verb, n.Name, c.part(), attempt, c.By())
}

// HoldBack keeps the candidate back, or passes its step over.
func (t nodeTarget) HoldBack(c *Candidate, pending *Record, reason Reason, f *Finding) Decision {
	if f.pass {
		if over := t.passOver(c, pending, reason, f); over != nil {
			return *over
		}
	}
	d := t.keep(c, pending, reason, f)
	d.Ask.Heartbeats = reason == Blind && t.uncounted(c.Now) && t.Heartbeats.Blind() != ""
	d.Ask.Witness = reason == NotWitnessed && c.witnessDue()
	return d
}

func (t nodeTarget) keep(c *Candidate, pending *Record, reason Reason, f *Finding) Decision {
	d := Held(c, reason, f)
	hold, was := NewHold(reason, f, c.Now), t.record()
	// A person's request is consumed with the record of it, whatever holds it.
	if was.holds(pending, hold, d.Fleetwide) || (c.request != "" && (was == nil || was.ID != pending.ID)) {
		d.Record = pending.Clone()
		d.Record.Hold, d.Record.Also = hold, t.also(pending)
	}
	return d
}

func (t nodeTarget) acting(now time.Time) Decision {
	if !Registry[t.record().Step.Name].Once {
		return t.work(now)
	}
	return settle(t, now)
}

func (t nodeTarget) overdue(r *Record, now time.Time) bool {
	return r.beyond(now) && t.Heartbeats.Agrees(now)
}

func (t nodeTarget) rest(time.Time) Decision {
	return Decision{Verb: Rest, Message: fmt.Sprintf("repair %s has run out of steps; set %s=true when the node is mended", t.record().ID, ResetKey)}
}

func (t nodeTarget) apart() time.Duration { return refusedFor }

func (t nodeTarget) attempt(r *Record) string { return r.Step.String() }

func (t nodeTarget) awaits() string { return "waiting for proof" }
