package node

import (
	"cmp"
	"fmt"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

type state struct{ lifecycle.Base }

// of takes the record on the Node, or one that the decision would write.
func of(known *lifecycle.State, r *remediations.Record) *state {
	s := &state{}
	s.Bind(s, known, remediations.Subject{Record: r})
	return s
}

func (s *state) Describe() lifecycle.Description {
	d := lifecycle.Description{Kind: remediations.KindNode, Apart: refusedFor, Awaits: lifecycle.AwaitsProof, TakesOff: true, OnRequest: true}
	if s.Node != nil { // the Node of a replaced machine may not exist yet
		d.What = s.Node.Name
	}
	return d
}

func (s *state) PolicyFor(r *remediations.Record) *remediations.Policy {
	return s.Config.PolicyOf(r.Policy, s.Node)
}

// Named does nothing: the record is on the Node itself.
func (s *state) Named(*remediations.Record) {}

// Consider decides about one alert that has no repair yet.
func (s *state) Consider(p *remediations.Policy, a *remediations.Alert, now time.Time) lifecycle.Decision {
	return s.consider(p, a, "", now)
}

// First decides about a person's request, before any alert.
func (s *state) First(now time.Time) (lifecycle.Decision, bool) {
	if request := s.request(); request != "" {
		return s.asked(request, now), true
	}
	return lifecycle.Decision{}, false
}

// Examine checks whether exactly one provider serves the step and would allow it. While the
// provider is asked again, its last refusal still holds the step, so that the hold is reported
// once.
func (s *state) Examine(c *lifecycle.Candidate, pending *remediations.Record, observing bool) (*lifecycle.Decision, remediations.Reason, *lifecycle.Finding) {
	if f := unserved(c); f != nil {
		return nil, remediations.ReasonProviderAbsent, f
	}
	if f := twins(c); f != nil {
		return nil, remediations.ReasonProviderAbsent, f
	}
	if f := unprovable(c); f != nil {
		return nil, remediations.ReasonProviderAbsent, f
	}
	if f := drainedAnyway(c); f != nil {
		return nil, remediations.ReasonProviderAbsent, f
	}
	if observing {
		if c.Unwitnessed() { // in observe mode, only a step that would really be issued is reported
			d := s.lookOnce(c, lifecycle.Ask{Witness: true})
			return &d, "", nil
		}
		return nil, "", nil
	}
	if f := s.uncallable(c, pending); f != nil {
		if over := s.passOver(c, pending, remediations.ReasonProviderUnreachable, f); over != nil {
			return over, "", nil
		}
	}
	trouble := s.trouble(c)
	if trouble == nil {
		return nil, "", nil
	}
	if trouble.Pass {
		if over := s.passOver(c, pending, s.troubleIs(), trouble); over != nil {
			return over, "", nil
		}
	}
	d := s.keep(c, pending, s.troubleIs(), trouble)
	d.Ask.Survey, d.AskStep = s.surveyOf(c) == nil, ask(c)
	return &d, "", nil
}

func (s *state) Asks(c *lifecycle.Candidate, also *lifecycle.Ask) remediations.StepOn {
	also.Survey, also.Witness = s.surveyOf(c) == nil, c.Unwitnessed()
	return ask(c)
}

func (s *state) Intend(c *lifecycle.Candidate, pending *remediations.Record, d *lifecycle.Decision) {
	n, r, spent := s.Node, d.Record, s.taken(pending, c.Step)
	r.Also = s.also(r)
	r.Intent.BootID, r.Intent.UID, r.Intent.ProviderID = n.Status.NodeInfo.BootID, string(n.UID), n.Spec.ProviderID
	r.Intent.GPUs = max(pending.GPUsToKeep(n), s.Ledger.GPUsOf(n))
	if r.Drained() {
		r.Intent.Zone, r.Intent.Pool, r.Intent.ControlPlane = s.Config.Zone(n), s.Config.Pool(n), remediations.ControlPlane(n)
		if was := pending.Intent; was != nil { // the repair counts for the node's zone and pool at the time of its drain
			r.Intent.Zone, r.Intent.Pool = cmp.Or(was.Zone, r.Intent.Zone), cmp.Or(was.Pool, r.Intent.Pool)
			r.Intent.ControlPlane = r.Intent.ControlPlane || was.ControlPlane
		}
	}
	if s.Config.Several(c.Step.Name) {
		r.Intent.Provider = provider(c)
	}
	r.Intent.Before, r.Intent.SpentSeconds = before(s.Survey, ask(c)), int(spent.Seconds())
	if v := s.surveyOf(c); v.Evidence != "" {
		r.Evidence = remediations.EvidenceOf(v.Evidence)
	}
	d.Signs = c.Signs()
	attempt := ""
	if c.Remediation().Once {
		attempt = fmt.Sprintf(" (attempt %d)", c.Step.Attempt)
	} else {
		r.Deadline = remediations.Instant(c.Now.Add(c.Policy.Plan[c.Step.Index].Timeout - spent))
		if !n.Spec.Unschedulable {
			d.Cordon = true
			r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoCordon, At: remediations.Instant(c.Now)})
		}
	}
	d.Announce = r.Unannounced(s.Config, n)
	for _, key := range d.Announce {
		r.Undo = append(r.Undo, remediations.Undo{Kind: remediations.UndoAnnotation, Key: key, At: remediations.Instant(c.Now)})
	}
	d.Message = fmt.Sprintf("%s %s%s%s %s", c.Remediation().Verb, n.Name, part(c), attempt, c.By())
}

// Hold skips the step if the finding allows that.
func (s *state) Hold(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason, f *lifecycle.Finding) lifecycle.Decision {
	if f.Pass {
		if over := s.passOver(c, pending, reason, f); over != nil {
			return *over
		}
	}
	d := s.keep(c, pending, reason, f)
	d.Ask.Heartbeats = reason == remediations.ReasonBlind && s.Uncounted(c.Now) && s.Heartbeats.Blind() != ""
	d.Ask.Witness = reason == remediations.ReasonNotWitnessed && c.WitnessDue()
	return d
}

func (s *state) keep(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason, f *lifecycle.Finding) lifecycle.Decision {
	d := lifecycle.Held(c, reason, f)
	hold, was := lifecycle.NewHold(reason, f, c.Now), s.Record
	if since := s.aloneSince(c); reason == remediations.ReasonProviderUnreachable && !since.IsZero() {
		hold.Since, hold.Alone = remediations.Instant(since), true // aloneSince starts from this time
	}
	// A person's request is removed when the record of its repair is written, even if the repair is
	// held.
	if was.Holds(pending, hold, d.Fleetwide) || (c.Request != "" && (was == nil || was.ID != pending.ID)) {
		d.Record = pending.Clone()
		d.Record.Hold, d.Record.Also = hold, s.also(pending)
	}
	return d
}

// Acting continues a step that may be repeated, for example a drain. For others it waits for the
// result of the call.
func (s *state) Acting(now time.Time) lifecycle.Decision {
	if !s.Config.Remediation(s.Record.Step.Name).Once {
		return s.work(now)
	}
	return s.Base.Acting(now)
}

func (s *state) Overdue(r *remediations.Record, now time.Time) bool {
	return r.Beyond(now) && remediations.ClocksAgree(s.Heartbeats, now)
}
