package node

import (
	"cmp"
	"fmt"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// state is the node itself as a target of package lifecycle.
type state struct{ lifecycle.Target }

// of returns the node with that record of its repair: the record on the Node, or the one that the
// decision would write.
func of(known *lifecycle.State, r *remediations.Record) *state {
	s := &state{lifecycle.Target{State: known, Subject: remediations.Subject{Record: r}, Apart: refusedFor, TakesOff: true, OnRequest: true}}
	if known.Node != nil { // the Node of a replaced machine may not exist yet
		s.What = known.Node.Name
	}
	s.PolicyFor = func(r *remediations.Record) *remediations.Policy { return s.Config.PolicyOf(r.Policy, s.Node) }
	s.Causes, s.Likely, s.Said = s.mildestFirst, s.likelyStep, s.verdictOn
	s.Begun = func(r *remediations.Record) bool { return r.Intent != nil }
	s.First, s.Examine, s.Asks, s.Intend, s.Hold = s.first, s.examine, s.asks, s.intend, s.hold
	s.Consider = func(p *remediations.Policy, a *remediations.Alert, now time.Time) lifecycle.Decision {
		return s.consider(p, a, "", now)
	}
	s.Acting, s.Overdue, s.Await, s.Proceed, s.Rest = s.acting, s.overdue, s.await, s.proceed, s.rest
	s.Well, s.Sound, s.Evidence, s.Cure, s.Closing = s.well, s.sound, s.evidence, s.cure, s.closing
	return s
}

// first decides about a person's request.
func (s *state) first(now time.Time) (lifecycle.Decision, bool) {
	if request := s.request(); request != "" {
		return s.asked(request, now), true
	}
	return lifecycle.Decision{}, false
}

// examine checks whether exactly one provider carries out the step on this node, and what that
// provider has against it. Its answer holds, and is reported once, while the provider is asked
// again.
func (s *state) examine(c *lifecycle.Candidate, pending *remediations.Record, observing bool) (*lifecycle.Decision, remediations.Reason, *lifecycle.Finding) {
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
		if c.Unwitnessed() { // a would-be step is reported only if it would really be issued
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

func (s *state) asks(c *lifecycle.Candidate, also *lifecycle.Ask) remediations.StepOn {
	also.Survey, also.Witness = s.surveyOf(c) == nil, c.Unwitnessed()
	return ask(c)
}

func (s *state) intend(c *lifecycle.Candidate, pending *remediations.Record, d *lifecycle.Decision) {
	n, r, spent := s.Node, d.Record, s.taken(pending, c.Step)
	r.Also = s.also(r)
	r.Intent.BootID, r.Intent.UID, r.Intent.ProviderID = n.Status.NodeInfo.BootID, string(n.UID), n.Spec.ProviderID
	r.Intent.GPUs = max(pending.GPUsToKeep(n), s.Ledger.GPUsOf(n))
	if r.Drained() {
		r.Intent.Zone, r.Intent.Pool, r.Intent.ControlPlane = s.Config.Zone(n), s.Config.Pool(n), remediations.ControlPlane(n)
		if was := pending.Intent; was != nil { // the repair counts where its node was drained
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

// hold holds the candidate, or passes its step over.
func (s *state) hold(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason, f *lifecycle.Finding) lifecycle.Decision {
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
		hold.Since, hold.Alone = remediations.Instant(since), true // aloneSince counts from there
	}
	// A person's request is consumed with its record, whatever holds it.
	if was.Holds(pending, hold, d.Fleetwide) || (c.Request != "" && (was == nil || was.ID != pending.ID)) {
		d.Record = pending.Clone()
		d.Record.Hold, d.Record.Also = hold, s.also(pending)
	}
	return d
}

func (s *state) acting(now time.Time) (lifecycle.Decision, bool) {
	if !s.Config.Remediation(s.Record.Step.Name).Once {
		return s.work(now), true
	}
	return lifecycle.Decision{}, false
}

func (s *state) overdue(r *remediations.Record, now time.Time) bool {
	return r.Beyond(now) && remediations.ClocksAgree(s.Heartbeats, now)
}
