package node

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// SuccessorOf returns the Node of the machine that replaces another one. It is nil until the new
// Node has joined and the provider has named the new machine. o is in the ledger, because the old
// Node may no longer exist.
func SuccessorOf(o *ledger.Orphan, r *remediations.Replacement, nodes []*corev1.Node) *corev1.Node {
	if r == nil || !r.About(o.Record.Intent) {
		return nil
	}
	i := slices.IndexFunc(nodes, func(n *corev1.Node) bool {
		return string(n.UID) != o.UID && n.Spec.ProviderID != o.ProviderID && slices.Contains(r.Successors, n.Spec.ProviderID)
	})
	if i < 0 {
		return nil
	}
	return nodes[i]
}

// DecideSuccessor decides about a repair that replaces its machine and whose Node no longer exists.
// known is the new machine's Node, with the repair's record. known.Node is nil while there is none.
func DecideSuccessor(known *lifecycle.State, o *ledger.Orphan, now time.Time) lifecycle.Decision {
	r := &o.Record
	s := of(known, r)
	p := s.Config.PolicyOf(r.Policy, &corev1.Node{})
	deadline := r.Intent.At.Add(s.Config.WaitOf(p, r.Step))
	d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: remediations.Earlier(deadline, now.Add(askEvery))}
	machine, again := s.answers().Machine, s.askedAgain(r.Intent)
	d.Ask.Replacement = !now.Before(again) || again.Sub(now) > askEvery
	switch {
	case !now.Before(deadline):
		return s.orphanOver(o, p, now)
	case machine == nil || (d.Ask.Replacement && machine.Missing != ""):
		d.Message = "querying the provider whether the machine was replaced"
		return d
	case s.Node == nil && machine.Missing == "" && machine.NoneNeeded && p != nil:
		return s.decideWithout(o, p, d, now)
	case s.Node == nil || machine.Missing != "":
		_, d.Message = s.Config.Remediation(r.Step.Name).Proof(r.Intent, &remediations.NodeFacts{}, s.answers())
		return d
	}
	next := r.Clone()
	next.Phase, next.Deadline = remediations.PhaseVerifying, deadline
	if over, well := of(s.State, next).Cured(p, now); well {
		over.Uncordon, over.Untaint = false, false // the changes were on the Node that is gone
		// The query is repeated in the background. proofFor continues meanwhile, because the
		// provider's proof is valid until the provider withdraws it.
		over.Ask.Replacement = over.Verb == lifecycle.VerbWait && d.Ask.Replacement
		return over
	}
	d.Message = "the machine was replaced, its Node is not well yet"
	if p == nil {
		d.Message = r.WithoutPolicy()
	}
	return d
}

// noneNeededFor is how long the provider must report that no other machine is needed. Controllers
// create evicted pods again within seconds, and in this time Drydock asks several times.
const noneNeededFor = time.Minute

// NoneNeeded is the message about a replacement that has ended without another machine.
const NoneNeeded = "the machine is gone and nothing needs another one"

// decideWithout decides if no other machine is needed. There is no lease or witness to read. As
// after any repair, the alert must have ended while its source still works. d is the decision to
// wait.
func (s *state) decideWithout(o *ledger.Orphan, p *remediations.Policy, d lifecycle.Decision, now time.Time) lifecycle.Decision {
	if again := s.Fleet.OfMachine(o.Node, o.ProviderID); again != nil {
		d.Message = fmt.Sprintf("Node %s of the old machine has come back", again.Name)
		return d
	}
	next, settled := o.Record.Clone(), *p
	next.Phase, next.Deadline = remediations.PhaseVerifying, o.Record.Intent.At.Add(s.Config.WaitOf(p, o.Record.Step))
	settled.ProofFor = max(p.ProofFor, noneNeededFor)
	w := &gone{orphan: o, policy: p}
	w.Bind(w, s.State, remediations.Subject{Record: next})
	over, well := w.Cured(&settled, now)
	if !well {
		d.Message = NoneNeeded + ", but the alert has not ended, or its state is unknown"
		return d
	}
	over.Policy = p
	if over.Verb == lifecycle.VerbWait {
		over.Ask.Replacement = over.Ask.Replacement || d.Ask.Replacement
		over.Recheck = remediations.Earlier(over.Recheck, d.Recheck)
	}
	return over
}

// gone is a node whose machine is gone and needs no successor.
type gone struct {
	state
	orphan *ledger.Orphan
	policy *remediations.Policy
}

func (s *gone) PolicyFor(*remediations.Record) *remediations.Policy { return s.policy }

// Verdict returns the verdict on the alert of the repair. A request has no alert: the verdict then
// only shows whether Prometheus works.
func (s *gone) Verdict(cause remediations.Cause) alerts.Verdict {
	return s.Snapshot.VerdictFor(cause.Alert, s.Config, s.OwnSilence())
}

func (s *gone) Well() (string, bool) { return NoneNeeded, true }

// Evidence requires a new answer of the provider, because there is no lease or witness.
func (s *gone) Evidence(d *lifecycle.Decision, _ *remediations.Policy, due, _ time.Time) (there bool, against string) {
	if s.Replacement.At.Before(due) {
		d.Ask.Replacement, d.Message = true, "querying the provider once more whether nothing needs another machine"
		return false, ""
	}
	return true, ""
}

func (s *gone) Cure(*remediations.Policy) (remediations.Outcome, string) {
	return remediations.OutcomeRecovered, fmt.Sprintf("%s cured it: %s, and the alert is gone; no Node came for Node %s", remediations.LastDone(s.Record), NoneNeeded, s.orphan.Node)
}

// Closing undoes nothing, because the Node is gone.
func (s *gone) Closing(d *lifecycle.Decision, _ time.Time) { describe(d.Ended, s.Record) }

// orphanOver ends a replacement that was not proven in time. Without a Node there is no history, so
// the end is only reported and counted.
func (s *state) orphanOver(o *ledger.Orphan, p *remediations.Policy, now time.Time) lifecycle.Decision {
	missing := "the provider was not asked"
	if machine := s.answers().Machine; machine != nil {
		missing = machine.Missing
	}
	r := &o.Record
	switch {
	case missing != "":
	case p == nil:
		missing = r.WithoutPolicy()
	case s.Node == nil && s.answers().Machine.NoneNeeded:
		missing = NoneNeeded + ", but only for a short time, or the alert has not ended"
	case s.Node == nil:
		missing = "the new machine has not joined as a Node"
	case s.unreadLease() != "":
		missing = s.unreadLease()
	default:
		missing = fmt.Sprintf("the new machine's Node %s is not healthy, or the alert has not ended", s.Node.Name)
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbEnd, Policy: p, Message: fmt.Sprintf("Node %s is gone and its replacement was not proven within %s: %s; a person must check the node pool", o.Node, text.Duration(s.Config.WaitOf(p, r.Step)), missing)}
	d.Ended = &remediations.Entry{
		ID: r.ID, Policy: r.Policy, Outcome: remediations.OutcomeExhausted, Steps: slices.Clone(r.Done), Began: r.Began, Ended: remediations.Instant(now),
		Cause: r.Cause.Alert, Also: slices.Clone(r.Also), Request: r.Cause.Request, Why: text.Line(d.Message, 300),
	}
	return d
}
