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

// surveyFor is how long a provider's answer about a machine is valid before a step. Drydock writes
// the intent immediately after the answer.
const surveyFor = 30 * time.Second

// noSurvey stands for the answer about a step that needs no query of a provider.
var noSurvey = &remediations.Survey{}

// surveyOf returns the provider's answer about the machine before this step. It returns nil if
// there is no valid answer, so that Drydock must query the provider.
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
// It uses the last answer, even if that has expired. It returns nil if nothing prevents the step,
// or if there was no query.
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

// providerWords returns the name of the queried provider, for messages. Providers that work on the
// cluster itself have no name.
func providerWords(v *remediations.Survey) string {
	if v.Provider == "" {
		return "the provider of the step " + v.Step.Name
	}
	return "the provider " + v.Provider
}

const (
	// unreachableFor is how long the provider must fail to reach a machine before the plan skips a
	// step with ContinueUnreachable.
	unreachableFor = 10 * time.Minute
	// unaskedFor is the longest gap between two queries during which the machine still counts as
	// unreachable. After a longer gap the time begins again, because the machine's state in between
	// is unknown. A new leader makes its first query sooner than this.
	unaskedFor = 2 * time.Minute
)

// unreachedLong reports whether the plan may skip the step. For that, the provider must have failed
// to reach this machine for unreachableFor, while it reached other machines.
func (s *state) unreachedLong(c *lifecycle.Candidate) bool {
	since := s.aloneSince(c)
	return c.Policy.Plan[c.Step.Index].ContinueUnreachable && !since.IsZero() && s.Survey.At.Sub(since) >= unreachableFor
}

// aloneSince returns when the provider's answers began to show that only this machine is
// unreachable. All later answers have shown the same. It returns zero if the last answer does not
// show this. If the field Alone of the record's hold is true, the hold keeps that start, also for a
// later leader of Drydock.
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

// troubleIs returns the reason of the hold for the finding that trouble returns.
func (s *state) troubleIs() remediations.Reason {
	switch v := s.Survey; {
	case v.Reason != "":
		return v.Reason
	case v.Unreached:
		return remediations.ReasonProviderUnreachable
	}
	return remediations.ReasonProviderAbsent
}

// uncallable returns a finding if the calls for the step have failed several times in a row because
// of this machine. If the step allows it, the plan then continues with the next step.
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

// ask returns the step as Survey.Step describes it: with the part of the node that it is about.
func ask(c *lifecycle.Candidate) remediations.StepOn { return c.Policy.Plan[c.Step.Index].On() }

func before(v *remediations.Survey, step remediations.StepOn) remediations.Before {
	if v == nil || v.Step != step || v.Before.Check() != nil {
		return ""
	}
	return v.Before
}

// askEvery is how often Drydock queries the provider whether a machine was replaced.
const askEvery = 15 * time.Second

// follow queries the provider of the last step regularly, until the provider can prove the step.
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

// heldUp writes into the record what delays the removal of the old machine. So people need not
// search for it in the provider's system.
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

// unserved returns a finding if not exactly one provider serves the step on the Node. For a step
// that prepares a later one, the provider of the later step counts. A step without a provider is
// skipped if a later step has one. If several providers serve a step, the repair is held.
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

// drainedAnyway returns a finding that skips a drain, if the provider of the next step drains the
// Node itself.
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

// provider returns the name of the provider that serves the step on the Node. It is empty if there
// is not exactly one.
func provider(c *lifecycle.Candidate) string {
	name, _ := c.Config.ProviderOf(c.Step.Name, c.Node)
	return name
}

// answers returns the answers of the provider and about pods that the proof of the last step uses.
// They must be about the intent in the record.
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

// askedAgain returns when the next query about the intent is due, askEvery after the last one. It
// returns zero if there was no query.
func (s *state) askedAgain(i *remediations.Intent) time.Time {
	switch {
	case s.Replacement != nil && s.Replacement.Intent == i.ID:
		return s.Replacement.At.Add(askEvery)
	case s.Pods != nil && s.Pods.Intent == i.ID:
		return s.Pods.At.Add(askEvery)
	}
	return time.Time{}
}
