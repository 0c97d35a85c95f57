package remediations

import (
	"fmt"
	"time"
)

const (
	// sidecarProof is how soon one that was approved is looked at again.
	sidecarProof = 2 * time.Second
	// sidecarApart is the least time between two attempts.
	sidecarApart = 30 * time.Second
	// sidecarRoom is what a sidecar's repair may need on its Node, record and history.
	sidecarRoom = 3 << 10
)

// SidecarState is all that DecideSidecar may know. Call, NewID and WellSince of the State are the sidecar's own.
type SidecarState struct {
	*State
	Subject
	// Sighting is what was last seen of it; nil: nothing yet.
	Sighting *Sighting
	// Busy counts the other sidecars under repair in the cluster.
	Busy int
	// NewTask is a fresh id for a task that this decision may begin.
	NewTask string
}

// DecideSidecar says what is to be done about one pod's sidecar now. It is pure, as Decide is, and asks the same guards,
// but for those that speak of nodes: an approval disrupts nothing.
func DecideSidecar(s *SidecarState, now time.Time) Decision {
	return decideOwn(s, now)
}

// tidy drops the alerts that are over.
func (s *SidecarState) tidy(d *Decision, now time.Time) {
	if s.stale() || d.Verb == Look {
		return
	}
	for i := range s.Alerts {
		if a := &s.Alerts[i]; s.over(a, now) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

func (s *SidecarState) policyOf(r *Record) *Policy { return s.Config.Policy(r.Policy) }

// untouched: there is a record only while something is done. What holds a sidecar before that is told, and not written.
func (s *SidecarState) untouched(*Record) bool { return false }

func (s *SidecarState) first(time.Time) (Decision, bool) { return Decision{}, false }

func (s *SidecarState) likelyStep(*Policy, *Alert, time.Time) StepOn { return StepOn{} }

func (s *SidecarState) consider(p *Policy, a *Alert, now time.Time) Decision {
	step, ok := s.firstStep(p)
	if !ok {
		return withoutStep(p)
	}
	pod, r := PodNamed(s.Name), s.newRecord(p, Cause{Alert: a.Fingerprint}, now)
	r.Pod, r.Step = &pod, step
	return act(s, s.candidate(p, a, a.Fingerprint, step, now), r)
}

func (s *SidecarState) candidate(p *Policy, a *Alert, fingerprint string, step StepRef, now time.Time) *candidate {
	return &candidate{State: s.State, now: now, policy: p, step: step, alert: a, kind: KindSidecar, record: s.Record, subject: "the sidecar of " + s.Name, verdict: s.Word.About(fingerprint, s.Config, "")}
}

// examine looks at the pod, and asks its sidecar and whoever owns it.
func (s *SidecarState) examine(c *candidate, pending *Record, observing bool) (*Decision, Reason, *Finding) {
	instead := func(d Decision) (*Decision, Reason, *Finding) { return &d, "", nil }
	if s.seen().older(c.now, lookAgain) {
		return instead(see("looking at the pod and its sidecar", c.policy))
	}
	if s.moved() {
		return instead(s.leave(c.now))
	}
	against, why := s.Sighting.against()
	if why == nil {
		against, why = s.Sighting.deliberate(c.verdict.StartsAt)
	}
	if why != nil {
		why.Until = s.Sighting.At.Add(lookAgain)
		return nil, against, why
	}
	if wait := s.turn(); wait != "" && !observing {
		d := Decision{Verb: Wait, Policy: c.policy, Message: wait}
		if was := s.Record; was != nil && was.Phase != Pending {
			d.Record = pending.clone() // its turn may be long in coming, and its phase is over
		}
		return instead(d)
	}
	return nil, "", nil
}

func (s *SidecarState) asks(c *candidate, ask *Ask) StepOn {
	ask.Sighting = s.seen().older(c.now, LookFor)
	return StepOn{}
}

// hold keeps the candidate back. Before anything was done that is on no record.
func (s *SidecarState) hold(c *candidate, pending *Record, reason Reason, f *Finding) Decision {
	d := keeping(c, reason, f)
	if was := s.Record; was != nil {
		if was.Phase != Pending || (!d.Fleetwide && (was.Hold == nil || was.Hold.Reason != reason)) {
			d.Record = pending.clone()
			d.Record.Hold = NewHold(reason, f, c.now)
			d.Record.Hold.Until = nil // it is looked at again and again, and the record not written for that
		}
	} else if !d.Fleetwide {
		// What holds it may be this node's, and the pod on another by now.
		if s.Sighting != nil && s.moved() {
			return s.leave(c.now)
		}
		return s.seen().again(d, c.now, lookElsewhere)
	}
	return d
}

// turn says what the sidecar has to wait for, which is over by itself and soon.
func (s *SidecarState) turn() string {
	for k, r := range s.Journal.Of(KindSidecar) {
		if k != s.Key && r.Phase == Acting {
			return "the sidecars of a node are approved one after the other; that of " + r.Pod.String() + " is"
		}
	}
	if s.Busy >= s.Config.Limits.Sidecars {
		return fmt.Sprintf("%d sidecars are under repair, limits.sidecars.concurrent is %d", s.Busy, s.Config.Limits.Sidecars)
	}
	if size := ownBytes(s.Node.Annotations); size+sidecarRoom > MaxBytesPerNode {
		return fmt.Sprintf("its node carries %d bytes of Drydock's already", size)
	}
	return ""
}

// ownBytes is what all of Drydock's keys take.
func ownBytes(annotations map[string]string) int {
	size := 0
	for k, v := range annotations {
		if Owned(k) {
			size += len(k) + len(v)
		}
	}
	return size
}

func (s *SidecarState) intend(c *candidate, _ *Record, d *Decision) {
	r := d.Record
	r.Pod.UID = s.Sighting.Pod.UID
	r.Intent.UID, r.Intent.Task = r.Pod.UID, s.NewTask
	d.Message = fmt.Sprintf("%s %s (attempt %d, task %s) %s", c.remediation().Verb, c.subject, c.step.Attempt, s.NewTask, c.by())
}

func (s *SidecarState) acting(now time.Time) Decision { return settle(s, now) }

func (s *SidecarState) overdue(r *Record, now time.Time) bool { return r.beyond(now) }

func (s *SidecarState) apart() time.Duration { return sidecarApart }

func (s *SidecarState) attempt(r *Record) string { return fmt.Sprintf("%s of %s", r.Step, s.Name) }

func (s *SidecarState) awaits() string { return "waiting for it to answer that it is ready" }

func (s *SidecarState) end(o Outcome, why string, now time.Time) Decision {
	d := Decision{Verb: End, Message: why, Policy: s.policyOf(s.Record), Ended: s.Record.ended(o, why, now)}
	d.Ended.Target, d.Ended.Pod = s.entry(), s.Name
	return d
}
