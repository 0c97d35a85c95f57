package remediations

import (
	"fmt"
	"time"
)

// recovered asks whether the repair's cure is proven: the node Ready, the alert gone while its source lives, the
// kubelet's lease fresh, all of it for proofFor, and asked for again at the end of that time. With the step's own
// proof that is Recovered, without it SelfRecovered. ok is false where the node is not well.
func (s *State) recovered(p *Policy, now time.Time) (d Decision, ok bool) {
	r := s.Journal.Record
	var proofFor time.Duration
	if p != nil {
		proofFor = p.ProofFor
	}
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
	if s.Lease == nil || s.Lease.ReadAt.Before(due) || (!s.Lease.fresh() && now.Sub(s.Lease.ReadAt) >= leaseAgain) {
		d.Ask.Lease, d.Message = true, "reading the node's lease"
		return d, true
	}
	if !s.Lease.fresh() {
		return Decision{Verb: Wait, Policy: p, Recheck: s.Lease.ReadAt.Add(leaseAgain), Message: "the kubelet's lease is stale"}, true
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
	if proven && r.Phase == Pending && s.WellSince.After(r.Intent.At.Add(s.waitOf(r)+proofFor)) {
		proven, missing = false, "the boot came long after the attempt's time was over"
	}
	if !proven {
		outcome, why = SelfRecovered, "the node is well and the alert is gone, but not by this repair: "+missing
	}
	return s.end(outcome, why, now), true
}

// fresh says that the kubelet's last renewal was good when the lease was read. One from far in the future says that one
// of the two clocks is wrong, and proves nothing.
func (l *Lease) fresh() bool {
	age := l.ReadAt.Sub(l.RenewedAt)
	return age <= l.Duration && age >= -leaseAhead
}
