package remediations

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxTarget is the longest name of a target.
const maxTarget = 253

// TargetState is all that DecideTarget may know of a target that is not the node itself, of a kind that needs no more than a look
// at it. Call, NewID, WellSince and WellHeard of the State are the target's own.
type TargetState struct {
	*State
	Subject
	Kind Kind
	// Seen is what was last seen of it; nil: nothing yet.
	Seen *Observation
}

// Observation is what was seen of a target: live, and never out of an alert.
type Observation struct {
	// At is when looking began.
	At time.Time
	// UID tells it from those that had its name before.
	UID string
	// Well: it is as it should be. Saw says in a sentence how it is.
	Well bool
	Saw  string
	// Held says why nothing may be done to it, Unknown why nothing can be said of it, Elsewhere why it is not this node's any more.
	Held, Unknown, Elsewhere string
}

// PlainKind is a kind whose targets are decided about by DecideTarget. One label of an alert names its target.
func PlainKind(kind Kind) *TargetKind {
	return &TargetKind{
		Kind: kind, Key: RepairPrefix + string(kind) + "-", Many: true,
		Name: func(p *Policy, labels map[string]string) (string, error) {
			if len(p.Labels) != 1 {
				return "", fmt.Errorf("policy %s does not say which label names a %s", p.Name, kind)
			}
			name := labels[p.Labels[0]]
			return name, validName(name, maxTarget, "lower-case letters, digits, '-', '.' and '/'", "-./")
		},
		Of: func(r *Record) string {
			if Registry[r.Step.Name].Target != kind || r.Pod != nil || r.Location != "" {
				return ""
			}
			return r.Target
		},
	}
}

// DecideTarget says what is to be done about such a target now. It is pure, as Decide is.
func DecideTarget(s *TargetState, now time.Time) Decision { return decideOwn(s, now) }

func (s *TargetState) tidy(d *Decision, now time.Time) { s.tidied(d, s.Record, s.causes(), now) }

func (s *TargetState) policyOf(r *Record) *Policy { return s.Config.Policy(r.Policy) }

func (s *TargetState) untouched(r *Record) bool { return r.Phase == Pending && len(r.Done) == 0 }

// first waits where the first call was withheld.
func (s *TargetState) first(now time.Time) (Decision, bool) {
	if s.Record == nil {
		return Decision{}, false
	}
	return s.Record.afterWithheld(s.policyOf(s.Record), lookAgain, now)
}

func (s *TargetState) likelyStep(*Policy, *Alert, time.Time) StepOn { return StepOn{} }

func (s *TargetState) consider(p *Policy, a *Alert, now time.Time) Decision {
	step, ok := s.firstStep(p)
	if !ok {
		return withoutStep(p)
	}
	r := s.Record
	if r == nil || r.Cause.Alert != a.Fingerprint || r.Policy != p.Name {
		r = s.newRecord(p, Cause{Alert: a.Fingerprint}, now)
		r.Target, r.Step = s.Name, step
	}
	return act(s, s.candidate(p, a, a.Fingerprint, step, now), r)
}

func (s *TargetState) candidate(p *Policy, a *Alert, fingerprint string, step StepRef, now time.Time) *candidate {
	return &candidate{State: s.State, now: now, policy: p, step: step, alert: a, kind: s.Kind, record: s.Record, subject: s.what(), verdict: s.Word.About(fingerprint, s.Config, "")}
}

// what is the target in a sentence.
func (s *TargetState) what() string { return fmt.Sprintf("%s %s", s.Kind, s.Name) }

// examine asks what was seen: a repair needs a target that surely is not well.
func (s *TargetState) examine(c *candidate, _ *Record, _ bool) (*Decision, Reason, *Finding) {
	instead := func(d Decision) (*Decision, Reason, *Finding) { return &d, "", nil }
	switch g := s.Seen; {
	case s.seen().older(c.now, lookAgain):
		return instead(see("looking at "+s.what(), c.policy))
	case g.Elsewhere != "":
		return instead(s.leave(c.now))
	case g.Unknown != "":
		return nil, NotWitnessed, Because("%s; no data is not a fault", clip(g.Unknown, 300))
	case g.Held != "":
		return nil, NotWitnessed, Because("%s", clip(g.Held, 300))
	case g.Well:
		return nil, NotWitnessed, Because("%s is well, whatever the alert says: %s", s.what(), clip(g.Saw, 200))
	case c.spent != "":
		return instead(s.exhaust(c.spent, c.now))
	}
	return nil, "", nil
}

func (s *TargetState) asks(c *candidate, ask *Ask) StepOn {
	ask.Sighting = s.seen().older(c.now, LookFor)
	return StepOn{}
}

func (s *TargetState) intend(c *candidate, _ *Record, d *Decision) {
	d.Record.Intent.UID = s.Seen.UID
	d.Message = fmt.Sprintf("%s %s (attempt %d) %s", c.remediation().Verb, s.what(), c.step.Attempt, c.by())
}

func (s *TargetState) hold(c *candidate, pending *Record, reason Reason, f *Finding) Decision {
	d := keeping(c, reason, f)
	d.Ask.Heartbeats = reason == Blind && s.Heartbeats.Blind() != "" && s.uncounted(c.now)
	if hold := NewHold(reason, f, c.now); s.Record.holds(pending, hold, d.Fleetwide) {
		d.Record = pending.clone()
		d.Record.Hold = hold
	}
	if g := s.Seen; g != nil && g.Elsewhere != "" && cancelled(c) == nil { // what holds it may be this node's
		return s.leave(c.now)
	}
	if reason == NotWitnessed || reason == Observing {
		return s.seen().again(d, c.now, lookAgain)
	}
	return s.seen().again(d, c.now, lookElsewhere)
}

func (s *TargetState) acting(now time.Time) Decision { return settle(s, now) }

func (s *TargetState) overdue(r *Record, now time.Time) bool { return r.beyond(now) }

func (s *TargetState) await(now time.Time) Decision { return awaitProof(s, now) }

func (s *TargetState) proceed(now time.Time) Decision { return goOn(s, now) }

func (s *TargetState) pace() pace {
	return pace{kind: s.Kind, again: lookAgain, proof: lookProof, provider: s.what(), waiting: "waiting for " + s.what(), attempt: "attempt"}
}

// instead ends the repair of what is another one by now, or another node's.
func (s *TargetState) instead(_ *Policy, now time.Time) (Decision, bool) {
	g, r := s.Seen, s.Record
	if g == nil || g.Unknown != "" || !g.At.After(r.Since) || (g.Elsewhere == "" && g.UID == r.Intent.UID) {
		return Decision{}, false
	}
	return s.leave(now), true
}

func (s *TargetState) expired(now time.Time) Decision { return heldTooLong(s, now) }

func (s *TargetState) rest(now time.Time) Decision {
	d := Decision{Verb: Rest, Message: fmt.Sprintf("repair %s has run out of attempts; a person must look at %s, or set %s=true", s.Record.ID, s.what(), ResetKey)}
	if len(s.Alerts) == 0 {
		return d
	}
	return s.seen().again(d, now, lookElsewhere)
}

func (s *TargetState) apart() time.Duration { return lookAgain }

func (s *TargetState) attempt(r *Record) string { return fmt.Sprintf("%s of %s", r.Step, s.what()) }

func (s *TargetState) awaits() string { return "waiting for proof" }

func (s *TargetState) well() (string, bool) {
	g := s.Seen
	return s.what() + " is well", g != nil && g.At.After(s.Record.Since) && g.Unknown == "" && g.Elsewhere == "" && g.Well
}

func (s *TargetState) evidence(d *Decision, _ *Policy, due, _ time.Time) (there bool, against string) {
	if s.Seen.At.Before(due) {
		d.Ask.Sighting, d.Message = true, "looking at "+s.what()
		return false, ""
	}
	return true, ""
}

// cure is Recovered where the call was made and the target is the same one that it was made for.
func (s *TargetState) cure(*Policy) (Outcome, string) {
	if r := s.Record; r.withheld() || r.Intent.Outcome == CallRefused {
		return SelfRecovered, fmt.Sprintf("%s is well and the alert is gone, but not by this repair: %s", s.what(), r.Intent.Why)
	} else if s.Seen.UID != r.Intent.UID {
		return SelfRecovered, fmt.Sprintf("%s is well and the alert is gone, but it is another one by now", s.what())
	}
	return Recovered, fmt.Sprintf("%s cured it: %s is well, and the alert is gone", lastDone(s.Record), s.what())
}

func (s *TargetState) verdictOn(cause Cause) Verdict { return s.Word.About(cause.Alert, s.Config, "") }

func (s *TargetState) missing() string {
	if g := s.Seen; g != nil && g.At.After(s.Record.Since) {
		return clip(cmp.Or(g.Unknown, g.Held, g.Saw, "the alert is still there"), 200)
	}
	return "it was not seen yet"
}

func (s *TargetState) end(o Outcome, why string, now time.Time) Decision {
	d := Decision{Verb: End, Message: why, Policy: s.policyOf(s.Record), Ended: s.Record.ended(o, why, now)}
	d.Ended.Target = s.entry()
	return d
}

// exhaust ends the plan; the record stays until a person has looked.
func (s *TargetState) exhaust(why string, now time.Time) Decision {
	d := s.end(OutcomeExhausted, fmt.Sprintf("%s (%s), and %s is not well: %s", why, joined(s.Record.Done), s.what(), s.missing()), now)
	d.Record = s.Record.exhausted(now)
	return d
}

// leave ends what this node has on a target that is not its own any more: the poll brings its alerts to the node that has it.
func (s *TargetState) leave(now time.Time) Decision {
	why := cmp.Or(s.Seen.Elsewhere, s.what()+" is another one by now")
	d := Decision{Verb: Rest, Message: why}
	if s.Record != nil {
		d = s.end(Superseded, why, now)
	}
	d.Prune = append(d.Prune, keysOf(s.Alerts)...)
	return d
}

func (s *TargetState) seen() seen {
	if s.Seen == nil {
		return seen{}
	}
	return seen(s.Seen.At)
}

// MayStillRepair asks, right before the call leaves, whether the Node still says what the decision about the target rested on.
func MayStillRepair(n *corev1.Node, key, intentID string) error {
	j := ReadJournal(n)
	r := j.Records[key]
	if r == nil || r.Phase != Acting || r.Intent.ID != intentID {
		return Withhold(CallWithheld, "the intent %s is no longer on record", intentID)
	}
	if j.Record != nil && j.Record.Phase.InFlight() {
		return Withhold(NodeUnderRepair, "the node came under repair %s", j.Record.ID)
	}
	for _, other := range j.OtherRepairs {
		if k, _ := other.target(); !k.Shares && other != r {
			return Withhold(NodeUnderRepair, "the node came under repair %s", other.ID)
		}
	}
	return letsAct(n)
}
