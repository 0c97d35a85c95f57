package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// SuccessorOf finds the Node of the machine that came for the orphan's; nil: it has not joined yet, or the provider has
// not said which machine it is.
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

// DecideSuccessor decides about a repair that outlived its Node. known is the state of the successor's Node with the orphan's
// record in its journal; where there is no successor yet, its Node is nil.
func DecideSuccessor(known *lifecycle.State, o *ledger.Orphan, now time.Time) lifecycle.Decision {
	r := &o.Record
	s := of(known, r)
	p := s.Config.Policy(r.Policy)
	if p == nil && strings.HasPrefix(r.Policy, remediations.RequestRemediation) {
		p = s.Config.Requested(r.Policy, &corev1.Node{})
	}
	deadline := r.Intent.At.Add(s.Config.WaitOf(p, r.Step))
	d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: remediations.Earlier(deadline, now.Add(askEvery))}
	machine, again := s.answers().Machine, s.askedAgain(r.Intent)
	d.Ask.Replacement = !now.Before(again) || again.Sub(now) > askEvery
	switch {
	case !now.Before(deadline):
		return s.orphanOver(o, p, now)
	case machine == nil || (d.Ask.Replacement && machine.Missing != ""):
		d.Message = "asking the provider whether the machine was replaced"
		return d
	case s.Node == nil || machine.Missing != "":
		_, d.Message = s.Config.Remediation(r.Step.Name).Proof(r.Intent, &remediations.NodeFacts{}, s.answers())
		return d
	}
	next := r.Clone()
	next.Phase, next.Deadline = remediations.PhaseVerifying, deadline
	if over, well := of(s.State, next).Cured(p, now); well {
		over.Uncordon, over.Untaint = false, false // that was the Node that is gone
		// What the provider has proven holds until it says otherwise: to ask again is no break in the node's being well.
		over.Ask.Replacement = over.Verb == lifecycle.VerbWait && d.Ask.Replacement
		return over
	}
	d.Message = "the machine was replaced, its Node is not well yet"
	if p == nil {
		d.Message = r.WithoutPolicy()
	}
	return d
}

// orphanOver ends a replacement that was not proven in time. There is no Node to keep it on, so it is told and counted.
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
	default:
		missing = "no Node of the new machine is well"
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbEnd, Policy: p, Message: fmt.Sprintf("Node %s is gone and its replacement was not proven within %s: %s; somebody must look at the pool", o.Node, s.Config.WaitOf(p, r.Step), missing)}
	d.Ended = &remediations.Entry{
		ID: r.ID, Policy: r.Policy, Outcome: remediations.OutcomeExhausted, Steps: slices.Clone(r.Done), Began: r.Began, Ended: remediations.Instant(now),
		Cause: r.Cause.Alert, Also: slices.Clone(r.Also), Request: r.Cause.Request, Why: text.Line(d.Message, 300),
	}
	return d
}
