package remediations

import "time"

// surveyFor is how long the provider's word about a machine is good: the intent follows at once.
const surveyFor = 30 * time.Second

// noSurvey is that of a step about which nobody is asked.
var noSurvey = &Survey{}

// surveyOf is what the provider says of the machine for the candidate's step; nil: it must be asked.
func (s *State) surveyOf(c *candidate) *Survey {
	if !c.remediation().LooksFirst {
		return noSurvey
	}
	v := s.Survey
	if v == nil || v.Step != c.ask() {
		return nil
	}
	good := surveyFor
	if v.Trouble != "" {
		good = v.Again
	}
	if age := c.now.Sub(v.At); age > good || age < 0 {
		return nil
	}
	return v
}

// trouble is what the provider had against the step when it was last asked; nil: nothing, or it was not asked.
func (s *State) trouble(c *candidate) *finding {
	v := s.Survey
	if !c.remediation().LooksFirst || v == nil || v.Step != c.ask() || v.Trouble == "" || v.At.After(c.now) {
		return nil
	}
	return &finding{message: v.Trouble, until: v.At.Add(v.Again), fleetwide: v.Fleetwide, pass: c.remediation().passed && !v.Fleetwide}
}

// ask names the candidate's step as Survey.Step does.
func (c *candidate) ask() string { return c.policy.Plan[c.step.Index].ask() }

func (v *Survey) before(step string) *Before {
	if v == nil || v.Step != step || v.Before == nil {
		return nil
	}
	b := *v.Before
	return &b
}

// askEvery is how often the provider is asked whether a machine was replaced.
const askEvery = 15 * time.Second

// followReplacement asks the provider how far it is, and marks the old node as out of service when its machine is
// certainly gone, so that what was attached to it is let go.
func (s *State) followReplacement(d *Decision, now time.Time) {
	r := s.Journal.Record
	if !Registry[stepName(lastDone(r))].asks || r.Intent.Before == nil {
		return
	}
	if s.Replacement == nil || now.Sub(s.Replacement.AskedAt) >= askEvery {
		d.Ask.Replacement = true
	} else if again := s.Replacement.AskedAt.Add(askEvery); again.Before(d.Recheck) {
		d.Recheck = again
	}
	if s.Replacement == nil || !s.Replacement.OldGone || string(s.Node.UID) != r.Intent.UID || ready(s.Node) || r.tainted() {
		return
	}
	d.Taint, d.Record = true, r.clone()
	d.Record.Undo = append(d.Record.Undo, Undo{Kind: UndoTaint, Key: OutOfServiceTaint, At: at(now)})
	d.Message = "its machine is gone: the node is marked out of service, so that volumes and pods are let go"
}

// OutOfServiceTaint is Kubernetes' mark for a machine that is off for good.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

func (r *Record) tainted() bool {
	for _, u := range r.Undo {
		if u.Kind == UndoTaint && u.Key == OutOfServiceTaint {
			return true
		}
	}
	return false
}
