package remediations

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// sidecarAgain is how soon a sidecar that cannot be approved is looked at again.
	sidecarAgain = 15 * time.Second
	// sidecarElsewhere is how soon one whose node is held is looked for elsewhere.
	sidecarElsewhere = time.Minute
	// sidecarProof is how soon one that was approved is.
	sidecarProof = 2 * time.Second
	// sidecarApart is the least time between two attempts.
	sidecarApart = 30 * time.Second
	// sidecarRoom is what a sidecar's repair may need on its Node, record and history.
	sidecarRoom = 3 << 10
)

// SidecarState is all that DecideSidecar may know. Call, NewID and WellSince of the State are the sidecar's own.
type SidecarState struct {
	*State
	Sidecar
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
	if s.Journal.Malformed != nil {
		return Decision{Verb: Rest} // Decide says so, for the whole node
	}
	right, wrong := s.clampOwn(now)
	trusts, ask := s.trusts(now)
	if wrong && trusts {
		return right
	}
	d := s.decide(now)
	d.Ask.Heartbeats = wrong && ask
	if s.stale() || d.Verb == Look {
		return d
	}
	for i := range s.Alerts {
		if a := &s.Alerts[i]; s.over(a, now) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
	return d
}

// clampOwn is State.clamp for the record of the sidecar.
func (s *SidecarState) clampOwn(now time.Time) (Decision, bool) {
	r := s.Record
	if r == nil || r.Phase == Exhausted || r.Phase == Acting {
		return Decision{}, false
	}
	c, wrong := r.clamped(s.policyOf(r), now)
	return Decision{Verb: Wait, Record: c, Policy: s.policyOf(r), Recheck: now, Message: "times from the future on record are set to now"}, wrong
}

func (s *SidecarState) decide(now time.Time) Decision {
	r := s.Record
	switch {
	case r == nil:
		return s.start(now)
	case s.Node.Annotations[CancelKey] == r.ID && r.Phase != Acting && r.Phase != Exhausted:
		d := s.end(Cancelled, fmt.Sprintf("somebody set %s", CancelKey), now)
		d.Ended.By, d.Consume = ByPerson, []string{CancelKey}
		return d
	case r.Phase == Acting:
		return s.settle(now)
	case r.Phase == Verifying && now.Before(r.Deadline) && !r.beyond(now):
		return s.await(now)
	case r.Phase == Exhausted:
		return s.rest(now)
	}
	return s.proceed(now)
}

// start looks for an alert that no guard holds. What holds it is told, and not written: there is a record only while
// something is done.
func (s *SidecarState) start(now time.Time) Decision {
	var held *Decision
	for i := range s.Alerts {
		a := &s.Alerts[i]
		p := s.Config.Policy(a.Policy)
		if p == nil || p.Mode == ModeOff {
			continue
		}
		if s.stale() {
			return s.look("asking Alertmanager about " + a.Name)
		}
		if s.over(a, now) {
			continue
		}
		if d := s.consider(p, a, now); d.Verb != Keep {
			return d
		} else if held == nil {
			held = &d
		}
	}
	if held != nil {
		return *held
	}
	return Decision{Verb: Rest}
}

func (s *SidecarState) consider(p *Policy, a *Alert, now time.Time) Decision {
	step, ok := s.firstStep(p)
	if !ok {
		return Decision{Verb: Keep, Reason: ProviderAbsent, Fleetwide: true, Policy: p, Message: fmt.Sprintf("no step of policy %s can be carried out by this installation", p.Name)}
	}
	pod := s.Pod
	return s.act(s.candidate(p, a, a.Fingerprint, step, now), &Record{
		V: recordVersion, ID: s.NewID, Policy: p.Name, Cause: Cause{Alert: a.Fingerprint}, Pod: &pod, Phase: Pending,
		Step: step, Began: at(now), Since: at(now), Deadline: at(now.Add(pendingFor)),
	})
}

func (s *SidecarState) candidate(p *Policy, a *Alert, fingerprint string, step StepRef, now time.Time) *candidate {
	return &candidate{State: s.State, now: now, policy: p, step: step, alert: a, kind: KindSidecar, subject: "the sidecar of " + s.Pod.String(), verdict: s.Word.about(fingerprint, s.Config, "")}
}

// act issues the candidate's step, or holds it. pending is the record as it would be while held.
func (s *SidecarState) act(c *candidate, pending *Record) Decision {
	d := Decision{Policy: c.policy}
	c.own = pending.ID
	reason, f := s.withoutLedger(c.now)
	switch {
	case s.Ledger != nil:
		reason, f = c.hold()
	case f == nil:
		return s.readLedger(c.policy)
	}
	if f == nil || reason == Observing {
		if s.unseen(c.now, sidecarAgain) {
			return s.see("looking at the pod and its sidecar", c.policy)
		}
		if s.moved() {
			return s.leave(c.now)
		}
		why, against := s.Sighting.against()
		if against == nil {
			why, against = s.Sighting.deliberate(c.verdict.startsAt)
		}
		if against != nil {
			reason, f = why, against
			f.until = s.Sighting.At.Add(sidecarAgain)
		}
	}
	if f == nil {
		if wait := s.turn(); wait != "" {
			d.Verb, d.Message = Wait, wait
			if was := s.Record; was != nil && was.Phase != Pending {
				d.Record = pending.clone() // its turn may be long in coming, and its phase is over
			}
			return d
		}
		d.Ask = Ask{Alerts: c.now.Sub(s.LookSince) > lookFor, Sighting: s.unseen(c.now, lookFor)}
		if d.Ask != (Ask{}) {
			d.Verb, d.Message = Look, "looking once more before the side effect"
			return d
		}
		return s.issue(c, pending)
	}
	d.Verb, d.Reason, d.Message, d.Fleetwide = Keep, reason, f.message, f.fleetwide || reason.Fleetwide()
	if f.until.After(c.now) {
		d.Recheck = f.until
	}
	if was := s.Record; was != nil {
		hold := &Hold{Reason: reason, Message: clip(f.message, 400), Since: at(c.now)}
		if was.Phase != Pending || (!d.Fleetwide && (was.Hold == nil || was.Hold.Reason != reason)) {
			d.Record = pending.clone()
			d.Record.Hold = hold
		}
	} else if !d.Fleetwide {
		// What holds it may be this node's, and the pod on another by now.
		if s.Sighting != nil && s.moved() {
			return s.leave(c.now)
		}
		return s.again(d, c.now, sidecarElsewhere)
	}
	return d
}

// turn says what the sidecar has to wait for, which is over by itself and soon.
func (s *SidecarState) turn() string {
	for k, r := range s.Journal.Sidecars {
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

func (s *SidecarState) issue(c *candidate, pending *Record) Decision {
	r := pending.clone()
	id := nextIntentID(r, c.step, c.now)
	r.Phase, r.Step, r.Hold = Acting, c.step, nil
	r.Since, r.Deadline = at(c.now), at(c.now.Add(actingFor))
	r.Done = append(r.Done, c.step.String())
	r.Pod.UID = s.Sighting.Pod.UID
	r.Intent = &Intent{ID: id, At: at(c.now), UID: r.Pod.UID, Task: s.NewTask}
	return Decision{
		Verb: Issue, Policy: c.policy, Record: r,
		Message: fmt.Sprintf("%s %s (attempt %d, task %s) %s", c.remediation().Verb, c.subject, c.step.Attempt, s.NewTask, c.by()),
	}
}

// settle moves the repair on once its call is over, as for a node.
func (s *SidecarState) settle(now time.Time) Decision {
	r := s.Record.clone()
	outcome, why, underWay := s.Call.answer(r.Intent.ID, r.Deadline, now)
	if underWay {
		return Decision{Verb: Wait, Recheck: r.Deadline, Policy: s.policyOf(r), Message: "the call is under way"}
	}
	if s.Call.withheld(r, now) {
		return r.giveBack(s.Call, s.policyOf(r), sidecarApart, now)
	}
	r.Phase, r.Since = Verifying, at(now)
	r.Intent.Outcome, r.Intent.Why = outcome, clip(why, 300)
	r.Deadline = at(r.Intent.At.Add(s.policyOf(r).waitOf(r.Step)))
	if outcome == CallRefused {
		r.Deadline = at(r.Intent.At.Add(min(sidecarApart, s.policyOf(r).waitOf(r.Step))))
	}
	if outcome == CallAccepted {
		why = "accepted"
	}
	return Decision{Verb: Verify, Record: r, Policy: s.policyOf(r), Message: fmt.Sprintf("%s of %s: %s; waiting for it to answer that it is ready until %s", r.Step, s.Pod, why, r.Deadline.Format(time.RFC3339))}
}

func (s *SidecarState) policyOf(r *Record) *Policy { return s.Config.Policy(r.Policy) }

func (s *SidecarState) end(o Outcome, why string, now time.Time) Decision {
	r := s.Record
	return Decision{
		Verb: End, Message: why, Policy: s.policyOf(r),
		Ended: &Entry{
			ID: r.ID, Target: strings.TrimPrefix(s.Key, RepairPrefix), Pod: s.Pod.String(), Policy: r.Policy, Outcome: o,
			Steps: append([]string{}, r.Done...), Began: r.Began, Ended: at(now), Cause: r.Cause.Alert, Why: clip(why, 300),
		},
	}
}

// MayStillApprove asks, right before the approval leaves, whether the Node still says what the decision rested on.
func MayStillApprove(n *corev1.Node, key, intentID string) error {
	j := ReadJournal(n)
	r := j.Sidecars[key]
	switch {
	case r == nil || r.Phase != Acting || r.Intent.ID != intentID:
		return Withhold(CallWithheld, "the intent %s is no longer on record", intentID)
	case j.Record != nil && j.Record.Phase.InFlight():
		return Withhold(NodeUnderRepair, "the node came under repair %s", j.Record.ID)
	}
	for _, other := range j.OtherRepairs {
		if other.Pod == nil {
			return Withhold(NodeUnderRepair, "the node came under repair %s", other.ID)
		}
	}
	return letsAct(n)
}
