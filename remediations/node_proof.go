package remediations

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// unknownWait is for a step of another version of Drydock, which this one does not know.
const unknownWait = 10 * time.Minute

// waitOf is how long the proof of a step that is on record may take: as its plan says or, where that has it no more or there is
// no plan, as the remediation itself.
func (p *Policy) waitOf(step StepRef) time.Duration {
	if p != nil && step.Index < len(p.Plan) && p.Plan[step.Index].Name == step.Name {
		return p.Plan[step.Index].Wait
	}
	return cmp.Or(Registry[step.Name].Wait, unknownWait)
}

// await waits for the proof of the attempt that was issued.
func (s *State) await(now time.Time) Decision {
	r := s.Journal.Record
	p := s.policy()
	if c := s.Call; c != nil && c.IntentID == r.Intent.ID && r.Intent.Outcome == CallUnknown && (c.Outcome == CallAccepted || c.Outcome == CallRefused) {
		return settle(nodeTarget{s}, now) // the answer came late
	}
	d := Decision{Verb: Wait, Policy: p, Recheck: r.Deadline}
	d.Ask.Heartbeats = r.beyond(now)
	if proven, missing := s.proven(); !proven {
		d.Message = missing
		s.follow(&d, now)
		return d
	}
	cure, ok := cured(nodeTarget{s}, p, now)
	if ok {
		return cure
	}
	d.Message = cmp.Or(cure.Message, "the step's proof is there, the node is not well yet")
	return d
}

// WithoutPolicy says why a repair whose policy is no longer configured waits for its end: a cure shows by the policy's witness,
// and counts once it has held for the policy's proofFor.
func (r *Record) WithoutPolicy() string {
	return fmt.Sprintf("policy %s is no longer configured, so nothing says what proves a cure", r.Policy)
}

// proven asks for the issued step's own proof.
func (s *State) proven() (bool, string) {
	r := s.Journal.Record
	name := stepName(LastDone(r))
	if r.Withheld() {
		return false, "the last call was not made: " + r.Intent.Why
	}
	if r.Intent.Outcome == CallRefused && Registry[name].Once {
		return false, "the provider refused: " + r.Intent.Why
	}
	proof := Registry[name].Proof
	if proof == nil {
		return false, "this version knows no proof for the step " + name
	}
	return proof(r.Intent, facts(s.Node), s.answers())
}

// facts is what a proof is judged by.
func facts(n *corev1.Node) *NodeFacts {
	return &NodeFacts{BootID: n.Status.NodeInfo.BootID, UID: string(n.UID), ProviderID: n.Spec.ProviderID}
}

// well: the node is Ready.
func (t nodeTarget) well() (string, bool) { return "the node is well", ready(t.Node) }

// evidence reads the kubelet's lease, and whether the fault itself is gone by the policy's witness, since an alert may lapse while
// its fault stays.
func (t nodeTarget) evidence(d *Decision, p *Policy, due, now time.Time) (there bool, against string) {
	r := t.record()
	if t.Lease == nil || t.Lease.ReadAt.Before(due) || (!t.renewed(r) && now.Sub(t.Lease.ReadAt) >= leaseAgain) {
		d.Ask.Lease, d.Message = true, "reading the node's lease"
		return false, ""
	}
	if !t.renewed(r) {
		*d = Decision{Verb: Wait, Policy: p, Recheck: t.Lease.ReadAt.Add(leaseAgain), Message: "the kubelet's lease is stale"}
		return false, ""
	}
	gone, unread, saw := t.faultGone(p, r, due)
	switch {
	case unread:
		d.Ask.Witness, d.Message = true, "reading whether the fault itself is gone"
		return false, ""
	case !gone:
		return false, "the alert is gone, the fault is not: " + saw
	}
	return true, ""
}

// cure is Recovered with the step's own proof, and SelfRecovered without.
func (t nodeTarget) cure(p *Policy) (Outcome, string) {
	r := t.record()
	proven, missing := t.proven()
	if proven && r.Phase == Pending && t.WellSince.After(r.Intent.At.Add(p.waitOf(r.Step)+p.ProofFor)) {
		proven, missing = false, "the boot came long after the attempt's time was over"
	}
	if !proven {
		return SelfRecovered, "the node is well and the alert is gone, but not by this repair: " + missing
	}
	return Recovered, fmt.Sprintf("%s cured it: the node is Ready with a fresh lease, the alert is gone", LastDone(r))
}

// renewed says that the lease is fresh and, after a restart on the node, that it was renewed since.
func (s *State) renewed(r *Record) bool {
	return s.Lease.fresh() && (!Registry[stepName(LastDone(r))].RenewsLease || s.Lease.RenewedAt.After(r.Intent.At))
}

// fresh says that the kubelet's last renewal was good when the lease was read. One from far in the future says that one
// of the two clocks is wrong, and proves nothing.
func (l *Lease) fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return age <= l.Duration && age >= -leaseAhead
}
