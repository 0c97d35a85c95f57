// Package node decides how to repair nodes. It chooses the next step and the systems to query about
// the machine, and checks the proof of a cure. It undoes Drydock's changes, and handles people's
// annotations on the Node. It is pure: it uses no client and no clock of its own.
package node

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// refusedFor is the shortest time between an attempt that the provider refused and the next.
	refusedFor = time.Minute
	leaseAgain = 5 * time.Second
)

// FromTheFuture reports whether the Node's annotations have times in the future. Then Decide also
// depends on the kubelets' clocks, which may change although the Node stays the same.
func FromTheFuture(known *lifecycle.State, now time.Time) bool {
	_, wrong := of(known, known.Journal.Record).Clamp(now)
	return wrong
}

// Decide returns what to do about one node now. The same state and time give the same decision.
func Decide(known *lifecycle.State, now time.Time) lifecycle.Decision {
	s := of(known, known.Journal.Record)
	right, wrong := s.Clamp(now)
	trusts, ask := s.Trusts(now)
	if wrong && trusts {
		return right
	}
	d := s.decide(now)
	d.Ask.Heartbeats = d.Ask.Heartbeats || (wrong && ask)
	s.dropUnreadable(&d, now)
	s.consume(&d, now)
	s.prune(&d, now)
	s.remember(&d)
	s.rememberEnds(&d, now)
	s.relapsed(&d)
	s.uncordonedAfterwards(&d)
	s.backInService(&d, now)
	return d
}

func (s *state) decide(now time.Time) lifecycle.Decision {
	if d, ok := s.supersede(now); ok {
		return d
	}
	if d, ok := s.reset(now); ok {
		return d
	}
	if d, ok := s.takeBack(now); ok && !s.Cancelled() {
		return d
	}
	if r := s.Record; s.Journal.Malformed != nil && (r == nil || r.Phase == remediations.PhaseExhausted) {
		return lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: remediations.ReasonRecordMalformed, Message: fmt.Sprintf("%v; Drydock does nothing on this node until a person sets %s=true, which deletes the record", s.Journal.Malformed, remediations.ResetKey)}
	}
	return s.Live(now)
}

// consider decides about a fault without a repair: an alert or, if a is nil, a person's request.
func (s *state) consider(p *remediations.Policy, a *remediations.Alert, request string, now time.Time) lifecycle.Decision {
	cause := remediations.Cause{Request: request}
	if a != nil {
		cause.Alert = a.Fingerprint
	}
	r := s.Record
	if r == nil || r.Cause != cause || r.Policy != p.Name || !r.AsksFor(p, s.Node) {
		r = s.NewRecord(p, cause, now)
	}
	r = r.Clone()
	r.Plan = p.Approved(s.Node)
	if a != nil && r.After == nil {
		if cure := s.relapse(p, a, now); cure != nil {
			r.After = &remediations.After{ID: cure.Repair, Step: cure.Step, Steps: cure.Steps}
		}
	}
	c := s.Candidate(p, a, cause, remediations.StepRef{}, now)
	step, ok := s.FirstStep(p, r)
	switch {
	case ok:
		c.Step, r.Step = step, step
		return s.IssueOrHold(c, r)
	case s.begins(p, r): // never without After: FirstStep has just found no step
		r.Step = r.After.Step
		return s.spentPlan(c, r)
	}
	return lifecycle.Decision{Verb: lifecycle.VerbHold, Reason: remediations.ReasonProviderAbsent, Fleetwide: s.refusals(p) == "", Concern: remediations.Concern{Policy: p.Name}, Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation%s", p.Name, s.refusals(p))}
}

// Verdict returns what the Alertmanagers say about the cause of the repair.
func (s *state) Verdict(cause remediations.Cause) alerts.Verdict {
	if cause.Request != "" {
		return s.Snapshot.VerdictForNode(s.Node.Name, s.Config, s.OwnSilence())
	}
	return s.Snapshot.VerdictFor(cause.Alert, s.Config, s.OwnSilence())
}

// Proceed continues a repair between two attempts, or after a proof that did not come in time.
func (s *state) Proceed(now time.Time) lifecycle.Decision {
	r := s.Record
	p := s.policy()
	if p == nil || p.Mode == remediations.ModeOff {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !p.Takes(s.Node) {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s no longer selects this node: the node's labels or the policy's nodeSelector have changed", r.Policy), now)
	}
	if s.Stale() {
		d := s.Look("querying Alertmanager before the next step")
		d.Well = s.Sound() && !s.WellSince.IsZero() // a pass while the answer is on its way must not reset WellSince
		return d
	}
	c := s.acted(p, now)
	c.Step = remediations.StepRef{}
	var cure lifecycle.Decision
	if c.Resolved() {
		var well bool
		cure, well = s.Cured(p, now)
		switch pending := r.Phase == remediations.PhasePending; {
		case cure.Verb == lifecycle.VerbEnd:
			return cure
		case well && pending && now.Before(r.Deadline), well && !pending && s.Ledger != nil && s.unreadLease() != "":
			return s.proving(c, cure)
		}
		if !well {
			if s.fewerGPUs() != "" {
				return s.exhaust(p, now) // no alert needs another step, and a person must check the machine
			}
			if d, ok := s.otherAlert(p, now); ok {
				return d
			}
		}
	}
	if r.Phase == remediations.PhasePending && !now.Before(r.Deadline) {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("held for %s: %s", text.Duration(remediations.PendingFor), r.Hold.Words()), now)
	}
	if s.refilled() {
		return s.exhaust(p, now)
	}
	if r.Drained() && !s.Node.Spec.Unschedulable {
		return s.uncordoned("after its drain: pods may be back, and the plan would continue as if the node were empty", now)
	}
	if d, ok := lifecycle.AfterWithheld(r, p, refusedFor, now); ok {
		return d
	}
	if p.Moved(r.Step) {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("the plan of policy %s was changed, and step %d of it is not %s any more: the step where this repair would continue is unknown", p.Name, r.Step.Index+1, r.Step.Name), now)
	}
	step, ok := s.following(p)
	next := r.Between(now)
	if ok {
		c.Step, next.Step = step, step
	} else if s.Ledger != nil { // without the ledger IssueOrHold waits, as before any step
		if reason, f := c.HeldBy(nil); f == nil || reason == remediations.ReasonObserving {
			if c.Unwitnessed() {
				return s.lookOnce(c, lifecycle.Ask{Witness: true})
			}
			return s.exhaust(p, now)
		}
	}
	d := s.IssueOrHold(c, next)
	d.Well, d.Heard, d.Ask.Lease = cure.Well, cure.Heard, cure.Ask.Lease
	d.Ask.Witness = d.Ask.Witness || cure.Ask.Witness
	return d
}

// following returns false if the plan has no step left. An issued step is never issued again under
// the same attempt number, even if a person edited the plan.
func (s *state) following(p *remediations.Policy) (remediations.StepRef, bool) {
	r := s.Record
	if (r.Intent.Of(r, r.Step) && !s.interrupted(r)) || !s.Doable(p, r, r.Step) {
		return s.NextStep(p, r, r.Step)
	}
	return r.Step, true
}

func (s *state) acted(p *remediations.Policy, now time.Time) *lifecycle.Candidate {
	r := s.Record
	c := s.Candidate(p, s.AlertBy(r.Cause.Alert), r.Cause, r.Step, now)
	c.Repair, c.Own = r.ID, r.ID
	return c
}

func (s *state) lookOnce(c *lifecycle.Candidate, what lifecycle.Ask) lifecycle.Decision {
	return lifecycle.Decision{Verb: lifecycle.VerbLook, Ask: what, AskStep: ask(c), Policy: c.Policy, Message: "reading the node's state once more before the step"}
}

func (s *state) policy() *remediations.Policy { return s.PolicyOf(s.Record) }
