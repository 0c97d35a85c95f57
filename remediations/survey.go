package remediations

import "time"

// surveyFor is how long the provider's word about a machine is good: the intent follows at once.
const surveyFor = 30 * time.Second

// How long to wait before a provider is asked again about what is against a step: what passes by itself, and what a person must
// mend.
const (
	AskPassing = 30 * time.Second
	AskMended  = 5 * time.Minute
)

// noSurvey is that of a step about which nobody is asked.
var noSurvey = &Survey{}

// surveyOf is what the provider says of the machine for the candidate's step; nil: it must be asked.
func (s *State) surveyOf(c *Candidate) *Survey {
	if !c.Remediation().LooksFirst {
		return noSurvey
	}
	v := s.Survey
	if v == nil || v.Step != c.ask() || v.Provider != c.provider() {
		return nil
	}
	good := surveyFor
	if v.Trouble != "" {
		good = v.Again
	}
	if age := c.Now.Sub(v.At); age > good || age < 0 {
		return nil
	}
	return v
}

// trouble is what the provider had against the step when it was last asked; nil: nothing, or it was not asked.
func (s *State) trouble(c *Candidate) *Finding {
	v := s.Survey
	if !c.Remediation().LooksFirst || v == nil || v.Step != c.ask() || v.Provider != c.provider() || v.Trouble == "" || v.At.After(c.Now) {
		return nil
	}
	return &Finding{Message: v.Trouble, Until: v.At.Add(v.Again), fleetwide: v.Fleetwide, pass: c.Remediation().PassedOver && !v.Fleetwide}
}

// ask names the candidate's step as Survey.Step does.
func (c *Candidate) ask() StepOn { return c.Policy.Plan[c.Step.Index].On() }

func (v *Survey) before(step StepOn) Before {
	if v == nil || v.Step != step || v.Before.check() != nil {
		return ""
	}
	return v.Before
}

// askEvery is how often the provider is asked whether a machine was replaced.
const askEvery = 15 * time.Second

// follow asks whoever can tell whether the step's proof is there, again and again until it is.
func (s *State) follow(d *Decision, now time.Time) {
	r := s.Journal.Record
	if of := Registry[stepName(LastDone(r))]; (!of.AsksPods && !of.Replaces) || r.Intent.Before == "" {
		return
	}
	if again := s.askedAgain(r.Intent); !now.Before(again) || again.Sub(now) > askEvery {
		d.Ask.Replacement = true
	} else {
		d.Recheck = Earlier(d.Recheck, again)
	}
	s.letGo(d, now)
}
