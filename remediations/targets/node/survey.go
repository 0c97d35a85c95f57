package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// surveyFor is how long a provider's answer is valid before a step.
const surveyFor = 30 * time.Second

// noSurvey is for a step that needs no query of a provider.
var noSurvey = &remediations.Survey{}

// surveyOf returns nil if the provider must be asked again.
func (s *state) surveyOf(c *lifecycle.Candidate) *remediations.Survey {
	if !c.Config.AsksFirst(c.Step.Name) {
		return noSurvey
	}
	v := s.Survey
	if v == nil || v.Step != ask(c) || v.Provider != provider(c) {
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

// trouble returns why the provider, or another system that repairs nodes, would not allow the step.
// It uses the last answer, even if that has expired.
func (s *state) trouble(c *lifecycle.Candidate) *lifecycle.Finding {
	v := s.Survey
	if !c.Config.AsksFirst(c.Step.Name) || v == nil || v.Step != ask(c) || v.Provider != provider(c) || v.Trouble == "" || v.At.After(c.Now) {
		return nil
	}
	f := &lifecycle.Finding{Message: v.Trouble, Until: v.At.Add(v.Again), Fleetwide: v.Fleetwide}
	switch {
	case v.Fleetwide && v.Unreached && v.Reason == "":
		f.Message = fmt.Sprintf("%s has given no usable answer about any machine since %s; the last one: %s", providerWords(v), remediations.Instant(cmp.Or(v.OutSince, v.At)).Format(time.RFC3339), v.Trouble)
	case !v.Fleetwide && v.Reason == "":
		f.Pass = c.Remediation().PassedOver || (s.unreachedLong(c) && s.surveyOf(c) != nil) // an expired answer passes over no step
	}
	return f
}

// Providers that work on the cluster itself have no name.
func providerWords(v *remediations.Survey) string {
	if v.Provider == "" {
		return "the provider of the step " + v.Step.Name
	}
	return "the provider " + v.Provider
}

const (
	// unreachableFor is how long the provider must fail to reach a machine before a step with
	// ContinueUnreachable is skipped.
	unreachableFor = 10 * time.Minute
	// unaskedFor is how long the machine still counts as unreachable without a query. After a
	// longer gap, its state in between is unknown. A new leader asks sooner than this.
	unaskedFor = 2 * time.Minute
)

// unreachedLong reports whether the plan may skip the step: the provider has not reached this
// machine for unreachableFor, while it reached others.
func (s *state) unreachedLong(c *lifecycle.Candidate) bool {
	since := s.aloneSince(c)
	return c.Policy.Plan[c.Step.Index].ContinueUnreachable && !since.IsZero() && s.Survey.At.Sub(since) >= unreachableFor
}

// aloneSince returns since when the provider's answers have shown that only this machine is
// unreachable, or zero. If the hold's Alone is true, the hold keeps that start, also for a later
// leader.
func (s *state) aloneSince(c *lifecycle.Candidate) time.Time {
	v, r := s.Survey, s.Record
	switch {
	case v == nil || !v.Alone():
		return time.Time{}
	case r == nil || r.Step != c.Step || r.Hold == nil || !r.Hold.Alone || r.Hold.Until == nil:
		return v.At
	case v.At.After(r.Hold.Until.Add(unaskedFor)) || r.Hold.Since.After(v.At):
		return v.At
	}
	return r.Hold.Since
}

func (s *state) troubleIs() remediations.Reason {
	switch v := s.Survey; {
	case v.Reason != "":
		return v.Reason
	case v.Unreached:
		return remediations.ReasonProviderUnreachable
	}
	return remediations.ReasonProviderAbsent
}

// uncallable returns a finding if calls for the step failed several times in a row because of this
// machine. The plan may then continue with the next step.
//
// The count begins again after some time without a call, because a call that failed yesterday may
// succeed today. It also begins again while the whole provider does not answer.
func (s *state) uncallable(c *lifecycle.Candidate, pending *remediations.Record) *lifecycle.Finding {
	r := s.Record
	if pending.Alone == 0 {
		return nil
	}
	v := s.surveyOf(c)
	if out := v != nil && v.Unreached && v.Fleetwide; out || c.Now.Sub(r.Since) > lifecycle.CallAgain+unaskedFor {
		pending.Alone = 0
		return nil
	}
	if !lifecycle.UnreachableAlone(r) || r.Step != c.Step || !c.Policy.Plan[c.Step.Index].ContinueUnreachable {
		return nil
	}
	return &lifecycle.Finding{Message: fmt.Sprintf("%s in a row failed; the last one: %s", text.Count(r.Alone, "call"), r.Intent.Why), Pass: true}
}

func ask(c *lifecycle.Candidate) remediations.StepOn { return c.Policy.Plan[c.Step.Index].On() }

func before(v *remediations.Survey, step remediations.StepOn) remediations.Before {
	if v == nil || v.Step != step || v.Before.Check() != nil {
		return ""
	}
	return v.Before
}

// askEvery is how often the provider is asked whether a machine was replaced.
const askEvery = 15 * time.Second

// follow asks the provider of the last step regularly, until it can prove the step.
func (s *state) follow(d *lifecycle.Decision, now time.Time) {
	r := s.Record
	if of := s.Config.Remediation(remediations.LastDone(r).Name); (!of.AsksPods && !of.Replaces && !of.PowersOff) || r.Intent.Before == "" {
		return
	}
	if again := s.askedAgain(r.Intent); !now.Before(again) || again.Sub(now) > askEvery {
		d.Ask.Replacement = true
	} else {
		d.Recheck = remediations.Earlier(d.Recheck, again)
	}
	if s.mayRelease(now) {
		s.letGo(d, now)
	} else {
		s.heldUp(d)
	}
}

// heldUp writes into the record what delays the removal of the old machine, so that people need not
// search for it.
func (s *state) heldUp(d *lifecycle.Decision) {
	machine, r := s.answers().Machine, s.Record
	if machine == nil {
		return
	}
	if blocked := text.Line(machine.Blocked, 400); blocked != r.Note {
		d.Record = r.Clone()
		d.Record.Note = blocked
		if blocked != "" {
			d.Message = blocked
		}
	}
}

// unserved returns a finding if not exactly one provider serves the step. For a step that prepares
// a later one, the later provider counts. A step without a provider is skipped if a later step has
// one. If several serve a step, the repair is held.
func unserved(c *lifecycle.Candidate) *lifecycle.Finding {
	var first *lifecycle.Finding
	for _, step := range c.Policy.Plan[c.Step.Index:] {
		if !c.Config.NeedsProvider(step, c.Node) {
			continue
		}
		_, against := c.Config.ProviderOf(step.Name, c.Node)
		switch {
		case against == "" && (first == nil || !c.Remediation().Once):
			return nil
		case against == "":
			first.Pass = true
			return first
		case first == nil:
			first = &lifecycle.Finding{Message: against, Pass: c.Config.Remediation(step.Name).PassedOver && step.Name == c.Step.Name}
		}
		if len(c.Config.Claimants(step.Name, c.Node)) > 1 {
			return first
		}
	}
	return first
}

// drainedAnyway skips a drain if the provider of the next step drains the Node itself.
func drainedAnyway(c *lifecycle.Candidate) *lifecycle.Finding {
	if c.Step.Name != "drain" {
		return nil
	}
	for _, step := range c.Policy.Plan[c.Step.Index+1:] {
		if !c.Config.NeedsProvider(step, c.Node) {
			continue
		}
		name, against := c.Config.ProviderOf(step.Name, c.Node)
		if against != "" {
			continue // that step is passed over, too
		}
		if i := slices.IndexFunc(c.Config.Providers, func(p remediations.Provider) bool { return p.Name == name && p.Drains }); i >= 0 {
			return &lifecycle.Finding{Message: fmt.Sprintf("%s drains Node %s itself in the step %s", name, c.Node.Name, step.Name), Pass: true}
		}
		return nil
	}
	return nil
}

// provider is empty if not exactly one provider serves the step.
func provider(c *lifecycle.Candidate) string {
	name, _ := c.Config.ProviderOf(c.Step.Name, c.Node)
	return name
}

// answers returns only answers about the intent in the record.
func (s *state) answers() (a remediations.Answers) {
	r := s.Record
	of := s.Config.Remediation(remediations.LastDone(r).Name)
	if (of.Replaces || of.PowersOff) && s.Replacement != nil && s.Replacement.About(r.Intent) {
		a.Machine = s.Replacement
		if !s.Config.PromisesNone(of.Name, r.Intent) {
			promised := *a.Machine
			promised.NoneNeeded, a.Machine = false, &promised
		}
	}
	if s.Pods != nil && s.Pods.About(r.Intent) {
		a.Pods = s.Pods
	}
	return a
}

// askedAgain returns when the next query is due, or zero if there was none.
func (s *state) askedAgain(i *remediations.Intent) time.Time {
	switch {
	case s.Replacement != nil && s.Replacement.Intent == i.ID:
		return s.Replacement.At.Add(askEvery)
	case s.Pods != nil && s.Pods.Intent == i.ID:
		return s.Pods.At.Add(askEvery)
	}
	return time.Time{}
}
