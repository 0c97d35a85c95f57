package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// maxTarget is the longest name of a target.
const maxTarget = 253

// PlainState is all that DecidePlain may know of a target of a kind that needs no more than a look at it. Call, NewID, WellSince and
// WellHeard of the State are the target's own.
type PlainState struct {
	Target
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

// PlainKind is a kind whose targets are decided about by DecidePlain. One label of an alert names its target.
func PlainKind(kind remediations.Kind) *remediations.TargetKind {
	return &remediations.TargetKind{
		Kind: kind,
		Name: func(p *remediations.Policy, labels map[string]string) (string, error) {
			if len(p.Labels) != 1 {
				return "", fmt.Errorf("policy %s does not say which label names a %s", p.Name, kind)
			}
			name := labels[p.Labels[0]]
			return name, remediations.ValidName(name, maxTarget, "lower-case letters, digits, '-', '.' and '/'", "-./")
		},
	}
}

// DecidePlain says what is to be done about such a target now. It is pure, as Decide is.
func DecidePlain(state *PlainState, now time.Time) Decision {
	own := *state
	s := &own
	s.What = fmt.Sprintf("%s %s", s.Kind, s.Name)
	s.Of, s.Asked, s.Next, s.Looking, s.Checking = s.What, s.What, "attempt", "looking at "+s.What, "looking at "+s.What
	if s.Seen != nil {
		s.SeenAt = s.Seen.At
	}
	s.Unknown = remediations.ReasonNotWitnessed
	s.Soon = []remediations.Reason{remediations.ReasonNotWitnessed, remediations.ReasonObserving}
	s.Elsewhere, s.Examine, s.Intend, s.Instead = s.elsewhere, s.examine, s.intend, s.instead
	s.Rest, s.Well, s.Cure, s.Missing = s.rest, s.well, s.cure, s.missing
	return DecideTarget(&s.Target, now)
}

func (s *PlainState) elsewhere() string {
	if s.Seen == nil {
		return ""
	}
	return s.Seen.Elsewhere
}

// examine asks what was seen: a repair needs a target that surely is not well.
func (s *PlainState) examine(c *Candidate, _ *remediations.Record, _ bool) (*Decision, remediations.Reason, *Finding) {
	switch g := s.Seen; {
	case g.Unknown != "":
		return nil, remediations.ReasonNotWitnessed, Because("%s; no data is not a fault", text.Line(g.Unknown, 300))
	case g.Held != "":
		return nil, remediations.ReasonNotWitnessed, Because("%s", text.Line(g.Held, 300))
	case g.Well:
		return nil, remediations.ReasonNotWitnessed, Because("%s is well, whatever the alert says: %s", s.What, text.Line(g.Saw, 200))
	case c.Spent != "":
		d := s.exhaust(c.Spent, c.Now)
		return &d, "", nil
	}
	return nil, "", nil
}

func (s *PlainState) intend(c *Candidate, _ *remediations.Record, d *Decision) {
	d.Record.Intent.UID = s.Seen.UID
	d.Message = fmt.Sprintf("%s %s (attempt %d) %s", c.Remediation().Verb, s.What, c.Step.Attempt, c.By())
}

// instead ends the repair of what is another one by now, or another node's.
func (s *PlainState) instead(_ *remediations.Policy, now time.Time) (Decision, bool) {
	g, r := s.Seen, s.Record
	if g == nil || g.Unknown != "" || !g.At.After(r.Since) || (g.Elsewhere == "" && g.UID == r.Intent.UID) {
		return Decision{}, false
	}
	return s.leave(cmp.Or(g.Elsewhere, s.What+" is another one by now"), now), true
}

func (s *PlainState) rest(now time.Time) Decision {
	d := Decision{Verb: VerbRest, Message: fmt.Sprintf("repair %s has run out of attempts; a person must look at %s, or set %s=true", s.Record.ID, s.What, remediations.ResetKey)}
	if len(s.Alerts) == 0 {
		return d
	}
	return s.LookAgain(d, now, LookElsewhere)
}

func (s *PlainState) well() (string, bool) {
	g := s.Seen
	return s.What + " is well", g != nil && g.At.After(s.Record.Since) && g.Unknown == "" && g.Elsewhere == "" && g.Well
}

// cure is Recovered where the call was made and the target is the same one that it was made for.
func (s *PlainState) cure(*remediations.Policy) (remediations.Outcome, string) {
	if r := s.Record; r.Withheld() || r.Intent.Outcome == remediations.CallRefused {
		return remediations.OutcomeSelfRecovered, fmt.Sprintf("%s is well and the alert is gone, but not by this repair: %s", s.What, r.Intent.Why)
	} else if s.Seen.UID != r.Intent.UID {
		return remediations.OutcomeSelfRecovered, fmt.Sprintf("%s is well and the alert is gone, but it is another one by now", s.What)
	}
	return remediations.OutcomeRecovered, fmt.Sprintf("%s cured it: %s is well, and the alert is gone", remediations.LastDone(s.Record), s.What)
}

func (s *PlainState) missing() string {
	if g := s.Seen; g != nil && g.At.After(s.Record.Since) {
		return text.Line(cmp.Or(g.Unknown, g.Held, g.Saw, "the alert is still there"), 200)
	}
	return "it was not seen yet"
}

// exhaust ends the plan; the record stays until a person has looked.
func (s *PlainState) exhaust(why string, now time.Time) Decision {
	d := s.End(remediations.OutcomeExhausted, fmt.Sprintf("%s (%s), and %s is not well: %s", why, s.Record.Done, s.What, s.missing()), now)
	d.Record = s.Record.Exhausted(now)
	return d
}
