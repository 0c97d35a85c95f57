package node

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Await waits for the proof that the last attempt cured the node.
func (s *state) Await(now time.Time) lifecycle.Decision {
	r := s.Record
	p := s.policy()
	if c := s.Call; c != nil && c.IntentID == r.Intent.ID && r.Intent.Outcome == remediations.CallUnknown && (c.Outcome == remediations.CallAccepted || c.Outcome == remediations.CallRefused) {
		return s.Settle(now) // the answer came late
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: r.Deadline}
	d.Ask.Heartbeats = r.Beyond(now)
	if proven, missing := s.proven(); !proven {
		d.Message = missing
		s.follow(&d, now)
		return d
	}
	cure, ok := s.Cured(p, now)
	if ok {
		cure.Ask.Heartbeats = d.Ask.Heartbeats // a planted record must end even if the node's lease is never read
		return cure
	}
	d.Message = cmp.Or(cure.Message, "the step is proven, but the node is not well yet")
	return d
}

// proven reports whether the last step has its own proof, for example a new boot ID after a reboot,
// or what is missing.
func (s *state) proven() (bool, string) {
	r := s.Record
	name := remediations.LastDone(r).Name
	if r.Withheld() {
		return false, "the last call was not made: " + r.Intent.Why
	}
	if r.Intent.Outcome == remediations.CallRefused && s.Config.Remediation(name).Once {
		return false, "the provider refused: " + r.Intent.Why
	}
	proof := s.Config.Remediation(name).Proof
	if proof == nil {
		return false, "this version of Drydock has no proof for the step " + name
	}
	return proof(r.Intent, facts(s.Node), s.answers())
}

func facts(n *corev1.Node) *remediations.NodeFacts {
	return &remediations.NodeFacts{BootID: n.Status.NodeInfo.BootID, UID: string(n.UID), ProviderID: n.Spec.ProviderID}
}

// Well reports whether the node is Ready.
func (s *state) Well() (string, bool) { return "the node is well", s.Sound() }

func (s *state) Sound() bool { return remediations.Ready(s.Node) }

// Evidence requires a fresh lease of the kubelet. The policy's witness must not show the fault any
// more, because an alert may end although its fault is still there.
func (s *state) Evidence(d *lifecycle.Decision, p *remediations.Policy, due, now time.Time) (there bool, against string) {
	r := s.Record
	if s.Lease == nil || s.Lease.ReadAt.Before(due) || (!s.renewed(r) && now.Sub(s.Lease.ReadAt) >= leaseAgain) {
		d.Ask.Lease, d.Message = true, "reading the node's lease"
		return false, ""
	}
	if !s.renewed(r) {
		*d = lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: s.Lease.ReadAt.Add(leaseAgain), Message: cmp.Or(s.unreadLease(), "the kubelet's lease is stale")}
		return false, ""
	}
	if why := s.fewerGPUs(); why != "" {
		return false, why
	}
	gone, unread, saw := s.faultGone(p, r, due, now)
	switch {
	case unread:
		d.Ask.Witness, d.Message = true, "checking whether the fault itself is gone"
		return false, ""
	case !gone:
		return false, "the alert has ended, but the fault is still there: " + saw
	}
	return true, ""
}

// unreadLease returns a message if the node is Ready but its lease cannot be read.
func (s *state) unreadLease() string {
	if s.Lease == nil || s.Lease.Unread == "" || !s.Sound() {
		return ""
	}
	return fmt.Sprintf("the node is Ready, but its lease cannot be read (%s); without the lease, no cure is proven", text.Line(s.Lease.Unread, 200))
}

// proving waits for the proof after the attempt's time has ended, and holds the repair while the
// lease cannot be read. cure is the decision to wait.
func (s *state) proving(c *lifecycle.Candidate, cure lifecycle.Decision) lifecycle.Decision {
	r, unread := s.Record, s.unreadLease()
	if s.Ledger == nil || (unread == "" && (r.Hold == nil || r.Hold.Reason != remediations.ReasonBlind)) {
		return cure
	}
	reason, f := c.HeldBy(nil)
	if unread != "" && (f == nil || reason == remediations.ReasonAlertResolved || reason == remediations.ReasonObserving) {
		reason, f = remediations.ReasonBlind, &lifecycle.Finding{Message: unread}
	}
	if f == nil {
		return cure
	}
	next := r.Between(c.Now)
	// After an edit of the plan, the record keeps the step that was done, so that Proceed finds the
	// edit if the alert fires again. A step of the new plan could need one that was never done.
	if step, ok := s.following(c.Policy); ok && next.Phase != r.Phase && !c.Policy.Moved(r.Step) {
		next.Step = step
	}
	d := s.keep(c, next, reason, f)
	d.Recheck, d.Ask, d.Well, d.Heard = cure.Recheck, cure.Ask, cure.Well, cure.Heard
	return d
}

// fewerGPUs returns a message if the machine has fewer GPUs than before. A failed GPU may stay lost
// after a reboot, and the Node's GPU label then shows the lower number: an alert that compares with
// the label ends, although the GPU is missing.
func (s *state) fewerGPUs() string {
	count, had, lost := s.Record.LostGPUs(s.Node, s.Ledger.GPUsOf(s.Node))
	if !lost {
		return ""
	}
	return fmt.Sprintf("the machine came back with %d of the %d GPUs that it had", count, had)
}

// Cure returns Recovered if the last step has its own proof, or else SelfRecovered.
func (s *state) Cure(p *remediations.Policy) (remediations.Outcome, string) {
	r := s.Record
	proven, missing := s.proven()
	if proven && r.Phase == remediations.PhasePending && s.readyBy().After(r.Intent.At.Add(s.Config.WaitOf(p, r.Step)+p.ProofFor)) {
		proven, missing = false, "the boot came long after the attempt's time had ended"
	}
	if !proven {
		return remediations.OutcomeSelfRecovered, "the node is well and the alert is gone, but not by this repair: " + missing
	}
	return remediations.OutcomeRecovered, fmt.Sprintf("%s cured it: the node is Ready with a fresh lease, the alert is gone", remediations.LastDone(r))
}

// readyBy returns when Drydock first saw the node well. An earlier time from the kubelet, after the
// attempt, counts instead, because Drydock may have observed the node late.
func (s *state) readyBy() time.Time {
	at := remediations.ReadyCondition(s.Node).LastTransitionTime.Time // the node is Ready, so it has the condition
	if at.After(s.Record.Intent.At) && at.Before(s.WellSince) {
		return at
	}
	return s.WellSince
}

// renewed reports whether the lease is fresh. After a step with RenewsLease, for example a restart
// of the kubelet, the lease must have been renewed since the intent.
func (s *state) renewed(r *remediations.Record) bool {
	if r.Intent == nil { // no step was issued: the repair continued an earlier one whose plan was exhausted
		return s.Lease.Fresh()
	}
	since := func(t time.Time) bool { return t.After(r.Intent.At) }
	return s.Lease.Fresh() && (!s.Config.Remediation(remediations.LastDone(r).Name).RenewsLease || since(s.Lease.RenewedAt) || since(s.Lease.MovedFrom))
}
