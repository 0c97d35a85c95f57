package sidecar

import (
	"fmt"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

const (
	// proof is how long after an approval the sidecar is observed again.
	proof = 2 * time.Second
	// apart is the shortest time between two attempts.
	apart = 30 * time.Second
	// Room is how many bytes of annotations a sidecar's repair may need on its Node.
	Room = 3 << 10
)

// State is the input of Decide. Call, NewID and WellSince are those of the sidecar's repair.
type State struct {
	*lifecycle.State
	remediations.Subject
	// Seen is the last observation, or nil.
	Seen *Observation
	// Busy is the number of other sidecars under repair in the cluster.
	Busy int
	// NewTask is the id that an approval sends to the sidecar.
	NewTask string
}

type target struct {
	lifecycle.Base
	seen    *Observation
	busy    int
	newTask string
}

// Decide returns what to do about one pod's sidecar now. The same state and time give the same
// decision. It does not check the guards about the node itself, because an approval disrupts
// nothing.
func Decide(known *State, now time.Time) lifecycle.Decision {
	s := &target{seen: known.Seen, busy: known.Busy, newTask: known.NewTask}
	s.Bind(s, known.State, known.Subject)
	return lifecycle.DecideTarget(s, now)
}

func (s *target) Describe() lifecycle.Description {
	return lifecycle.Description{
		Kind: remediations.KindSidecar, What: "the sidecar of " + s.Name, Of: s.Name, Apart: apart,
		Looking: "observing the pod and its sidecar", Awaits: "waiting for the sidecar to answer that it is ready",
		Unknown: remediations.ReasonSidecarUnknown,
	}
}

func (s *target) SeenAt() time.Time {
	if s.seen == nil {
		return time.Time{}
	}
	return s.seen.At
}

func (s *target) Named(r *remediations.Record) { pod := remediations.PodNamed(s.Name); r.Pod = &pod }

func (s *target) Closing(d *lifecycle.Decision, _ time.Time) { d.Ended.Pod = s.Name }

// Asks requests the nodes' leases. The kubelet's clock has set the start time of the container, and
// the leases show whether the kubelets' clocks agree with Drydock's.
func (s *target) Asks(c *lifecycle.Candidate, ask *lifecycle.Ask) remediations.StepOn {
	ask.Heartbeats = s.Uncounted(c.Now)
	return s.Base.Asks(c, ask)
}

// Tidy removes the sidecar's alerts that have ended.
func (s *target) Tidy(d *lifecycle.Decision, now time.Time) {
	if s.Stale() || d.Verb == lifecycle.VerbLook {
		return
	}
	for i := range s.Alerts {
		if a := &s.Alerts[i]; s.Over(a, now) {
			d.Prune = append(d.Prune, a.Key())
		}
	}
}

// Examine checks whether the pod, its sidecar and its owner allow an approval.
func (s *target) Examine(c *lifecycle.Candidate, pending *remediations.Record, observing bool) (*lifecycle.Decision, remediations.Reason, *lifecycle.Finding) {
	instead := func(d lifecycle.Decision) (*lifecycle.Decision, remediations.Reason, *lifecycle.Finding) {
		return &d, "", nil
	}
	against, why := s.seen.against()
	if why == nil {
		against, why = s.seen.deliberate(c.Verdict.StartsAt, s.cured())
	}
	if why == nil && !s.Uncounted(c.Now) && !remediations.ClocksAgree(s.Heartbeats, c.Now) {
		against, why = remediations.ReasonSidecarUnknown, lifecycle.Because("%d of %d node leases are stale by Drydock's clock, so Drydock cannot compare its times with the start of the sidecar's container, and cannot know whether the start or a person closed the gate of %s", s.Heartbeats.Stale, s.Heartbeats.Nodes, s.seen.Pod)
	}
	if why != nil {
		why.Until = s.seen.At.Add(lifecycle.LookAgain)
		return nil, against, why
	}
	if wait := s.turn(); wait != "" && !observing {
		d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: c.Policy, Message: wait}
		if was := s.Record; was != nil && was.Phase != remediations.PhasePending {
			d.Record = pending.Clone() // the wait may take long, and the record's phase has ended
		}
		return instead(d)
	}
	return nil, "", nil
}

// Hold writes nothing before the first attempt, except what a policy that only observes would do.
func (s *target) Hold(c *lifecycle.Candidate, pending *remediations.Record, reason remediations.Reason, f *lifecycle.Finding) lifecycle.Decision {
	d := lifecycle.Held(c, reason, f)
	if was := s.Record; was != nil && was.Intent == nil && reason != remediations.ReasonObserving {
		return lifecycle.Decision{Verb: lifecycle.VerbDrop, Policy: c.Policy, Message: f.Message} // a hold alone needs no record
	} else if was != nil {
		if was.Phase != remediations.PhasePending || (!d.Fleetwide && (was.Hold == nil || was.Hold.Reason != reason)) {
			d.Record = pending.Clone()
			d.Record.Hold = lifecycle.NewHold(reason, f, c.Now)
			d.Record.Hold.Until = nil // Drydock observes the sidecar again and again, and must not write the record each time
		}
		return d
	}
	if reason == remediations.ReasonObserving && remediations.OwnBytes(s.Node.Annotations)+Room <= remediations.MaxBytesPerNode {
		d.Record = pending.Clone()
		d.Record.Hold = lifecycle.NewHold(reason, f, c.Now)
		return s.LookAgain(d, c.Now, lifecycle.LookAgain)
	}
	if !d.Fleetwide {
		// This hold may be about the present Node, although the pod runs on another node now.
		if s.Elsewhere() != "" {
			return s.leave(c.Now)
		}
		return s.LookAgain(d, c.Now, lifecycle.LookElsewhere)
	}
	return d
}

// cured returns when an earlier repair last observed the gate open, or zero.
func (s *target) cured() (at time.Time) {
	for _, e := range s.Journal.History {
		if e.Pod == s.Name && (e.Outcome == remediations.OutcomeRecovered || e.Outcome == remediations.OutcomeSelfRecovered) {
			at = remediations.Later(at, e.Ended.Add(-cureMargin))
		}
	}
	return at
}

// turn returns why the sidecar must wait for other repairs, or for room in the Node's annotations.
// Such a wait ends soon, so it is not a hold.
func (s *target) turn() string {
	for k, r := range s.Journal.Of(remediations.KindSidecar) {
		if k != s.Key && r.Phase == remediations.PhaseActing {
			return "Drydock approves the sidecars of a node one after the other; now it approves the sidecar of " + r.Pod.String()
		}
	}
	if s.busy >= s.Config.Limits.Sidecars {
		return fmt.Sprintf("sidecars under repair: %d; limits.sidecars.concurrent is %d", s.busy, s.Config.Limits.Sidecars)
	}
	if size := remediations.OwnBytes(s.Node.Annotations); size+Room > remediations.MaxBytesPerNode {
		return fmt.Sprintf("Drydock's annotations on the node take %d bytes; a repair needs up to %d more, and the limit is %d", size, Room, remediations.MaxBytesPerNode)
	}
	return ""
}

func (s *target) Intend(c *lifecycle.Candidate, _ *remediations.Record, d *lifecycle.Decision) {
	r := d.Record
	r.Pod.UID = s.seen.Pod.UID
	r.Intent.UID, r.Intent.Task = r.Pod.UID, s.newTask
	if !s.seen.StartedAt.IsZero() {
		r.Intent.Started = remediations.Instant(s.seen.StartedAt)
	}
	d.Message = fmt.Sprintf("%s %s (attempt %d, task %s) %s", c.Remediation().Verb, s.Describe().What, c.Step.Attempt, s.newTask, c.By())
}
