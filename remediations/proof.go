package remediations

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// settle moves a repair on from Acting once its call is over.
func (s *State) settle(now time.Time) Decision {
	old := s.Journal.Record
	outcome, why, underWay := s.Call.answer(old.Intent.ID, old.Deadline, now)
	if underWay {
		return Decision{Verb: Wait, Recheck: old.Deadline, Policy: s.policy(), Message: "the call is under way"}
	}
	if s.Call.withheld(old, now) {
		return old.giveBack(s.Call, s.policy(), refusedFor, now)
	}
	r := old.clone()
	r.Phase, r.Since = Verifying, at(now)
	if s.Call != nil && s.Call.IntentID == old.Intent.ID && s.Call.Silence != "" {
		r.Silence = s.Call.Silence
	}
	r.Intent.Outcome, r.Intent.Why = outcome, clip(why, 300)
	wait := s.policy().waitOf(r.Step)
	r.Deadline = at(r.Intent.At.Add(wait))
	if outcome == CallRefused {
		// Never later than the proof of a call could take: a clock that jumped would leave it waiting for as long.
		r.Deadline = earlier(r.Deadline, at(now.Add(min(wait, refusedFor))))
	}
	if outcome == CallAccepted {
		why = "accepted"
	}
	stop := ""
	if s.Call != nil && s.Call.IntentID == old.Intent.ID && s.Call.Stop {
		stop = clip(why, 300)
	}
	return Decision{Stop: stop, Verb: Verify, Record: r, Policy: s.policy(), Message: fmt.Sprintf("%s: %s; waiting for proof until %s", r.Step, why, r.Deadline.Format(time.RFC3339))}
}

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
		return s.settle(now) // the answer came late
	}
	d := Decision{Verb: Wait, Policy: p, Recheck: r.Deadline}
	d.Ask.Heartbeats = r.beyond(now)
	if proven, missing := s.proven(); !proven {
		d.Message = missing
		s.follow(&d, now)
		return d
	}
	cure, ok := s.recovered(p, now)
	if ok {
		return cure
	}
	d.Message = cmp.Or(cure.Message, "the step's proof is there, the node is not well yet")
	return d
}

// withoutPolicy says why a repair whose policy is no longer configured waits for its end: a cure shows by the policy's witness,
// and counts once it has held for the policy's proofFor.
func (r *Record) withoutPolicy() string {
	return fmt.Sprintf("policy %s is no longer configured, so nothing says what proves a cure", r.Policy)
}

// proven asks for the issued step's own proof.
func (s *State) proven() (bool, string) {
	r := s.Journal.Record
	name := stepName(lastDone(r))
	if r.withheld() {
		return false, "the last call was not made: " + r.Intent.Why
	}
	if r.Intent.Outcome == CallRefused && Registry[name].Once {
		return false, "the provider refused: " + r.Intent.Why
	}
	proof := Registry[name].proof
	if proof == nil {
		return false, "this version knows no proof for the step " + name
	}
	return proof(r.Intent, facts(s.Node), s.answers())
}

// facts is what a proof is judged by.
func facts(n *corev1.Node) *NodeFacts {
	return &NodeFacts{BootID: n.Status.NodeInfo.BootID, UID: string(n.UID), ProviderID: n.Spec.ProviderID}
}

// recovered asks whether the repair's cure is proven: the node Ready, the alert gone while its source lives, the
// kubelet's lease fresh, and the fault itself gone by the policy's witness, since an alert may lapse while its fault stays;
// all of it for proofFor, and asked for again at the end of that time. With the step's own
// proof that is Recovered, without it SelfRecovered. ok is false where the node is not well.
func (s *State) recovered(p *Policy, now time.Time) (d Decision, ok bool) {
	r := s.Journal.Record
	if p == nil {
		return Decision{Message: r.withoutPolicy()}, false
	}
	proofFor := p.ProofFor
	if !ready(s.Node) {
		return Decision{}, false
	}
	due := now.Add(-s.Config.MaxStaleness)
	matured := !s.WellSince.IsZero() && !now.Before(s.WellSince.Add(proofFor))
	// What is asked for at the end of that time must still be fresh when it is used: this process may have slept since.
	if end := s.WellSince.Add(proofFor); matured && end.After(due) {
		due = end
	}
	d = Decision{Verb: Wait, Policy: p, Recheck: r.Deadline, Well: !s.WellSince.IsZero()}
	cause := s.alert(r.Cause.Alert)
	saidResolved := cause != nil && cause.Status == StatusResolved
	if s.Word == nil || s.Word.AskedAt.Before(due) || (saidResolved && s.stale()) {
		d.Ask.Alerts, d.Message = true, "asking Alertmanager whether the alert is gone"
		return d, true
	}
	if s.Word.BlindCause(s.Config) != "" || !s.verdictOn(r.Cause).gone {
		return Decision{}, false
	}
	if s.Lease == nil || s.Lease.ReadAt.Before(due) || (!s.renewed(r) && now.Sub(s.Lease.ReadAt) >= leaseAgain) {
		d.Ask.Lease, d.Message = true, "reading the node's lease"
		return d, true
	}
	if !s.renewed(r) {
		return Decision{Verb: Wait, Policy: p, Recheck: s.Lease.ReadAt.Add(leaseAgain), Message: "the kubelet's lease is stale"}, true
	}
	gone, unread, saw := s.faultGone(p, r, due)
	switch {
	case unread:
		d.Ask.Witness, d.Message = true, "reading whether the fault itself is gone"
		return d, true
	case !gone:
		return Decision{Message: "the alert is gone, the fault is not: " + saw}, false
	}
	d.Well, d.Heard = true, s.Word.heardAt()
	since := s.WellSince
	if since.IsZero() {
		since = now
	}
	switch {
	case !matured && proofFor > 0:
		d.Recheck, d.Message = since.Add(proofFor), fmt.Sprintf("the node is well; it counts once that has held for %s", proofFor)
		return d, true
	case s.Config.Watchdog && (s.WellSince.IsZero() || !d.Heard.After(s.WellHeard)):
		d.Message = "the node is well; it counts once the Watchdog has come again, which shows that the alert's source still lives"
		return d, true
	}
	outcome, why := Recovered, fmt.Sprintf("%s cured it: the node is Ready with a fresh lease, the alert is gone", lastDone(r))
	proven, missing := s.proven()
	if proven && r.Phase == Pending && s.WellSince.After(r.Intent.At.Add(p.waitOf(r.Step)+proofFor)) {
		proven, missing = false, "the boot came long after the attempt's time was over"
	}
	if !proven {
		outcome, why = SelfRecovered, "the node is well and the alert is gone, but not by this repair: "+missing
	}
	return s.end(outcome, why, now), true
}

// renewed says that the lease is fresh and, after a restart on the node, that it was renewed since.
func (s *State) renewed(r *Record) bool {
	return s.Lease.fresh() && (!Registry[stepName(lastDone(r))].renews || s.Lease.RenewedAt.After(r.Intent.At))
}

// fresh says that the kubelet's last renewal was good when the lease was read. One from far in the future says that one
// of the two clocks is wrong, and proves nothing.
func (l *Lease) fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return age <= l.Duration && age >= -leaseAhead
}
