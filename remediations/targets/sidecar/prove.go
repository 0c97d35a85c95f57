package sidecar

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Await observes the sidecar until it answers that it is ready.
func (s *target) Await(now time.Time) lifecycle.Decision {
	if d, over := s.finished(now); over {
		return d
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: s.PolicyOf(s.Record), Recheck: s.Record.Deadline, Message: "the sidecar is not ready yet"}
	return s.LookAgain(d, now, proof)
}

// Proceed continues after an attempt that was not proven in time.
func (s *target) Proceed(now time.Time) lifecycle.Decision {
	r := s.Record
	p := s.PolicyOf(r)
	if p == nil || p.Kind != remediations.KindSidecar || p.Mode == remediations.ModeOff {
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !s.Config.Serves(p) {
		return s.End(remediations.OutcomeCancelled, "no provider of sidecars is configured any more", now)
	}
	if r.Intent.Ahead(now) {
		if s.NeverIssued(r, now) {
			return s.End(remediations.OutcomeCancelled, r.FromTheFuture(), now)
		}
		return s.WaitForClock(r, p, proof, now)
	}
	was := !s.WellSince.IsZero() // stays so during a look, which would otherwise reset WellSince
	if s.Stale() {
		d := s.Look("querying Alertmanager before the next attempt")
		d.Well = was
		return d
	}
	if s.Unseen(now, lifecycle.LookAgain) || !s.seen.At.After(r.Intent.At) {
		return lifecycle.Decision{Verb: lifecycle.VerbLook, Ask: lifecycle.Ask{Observation: true}, Policy: p, Well: was, Message: "observing the sidecar before the next attempt"}
	}
	if d, over := s.finished(now); over {
		return d
	}
	c := s.Candidate(p, remediations.AlertOf(s.Alerts, r.Cause), r.Cause, r.Step, now)
	c.Repair = r.ID
	if d, ok := lifecycle.AfterWithheld(r, p, apart, now); ok && !c.Resolved() {
		return s.LookAgain(d, now, lifecycle.LookAgain)
	}
	switch next := r.Intent.At.Add(apart); {
	case c.Resolved():
		return s.End(remediations.OutcomeSuperseded, "the alert has ended, and there is no proof that the sidecar waits for an approval: "+s.seen.words(), now)
	case r.Phase == remediations.PhasePending && !now.Before(r.Deadline):
		return s.End(remediations.OutcomeCancelled, fmt.Sprintf("held for %s: %s", text.Duration(remediations.PendingFor), r.Hold.Words()), now)
	case now.Before(next):
		return s.LookAgain(lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: next, Message: "the next attempt is not due yet"}, now, lifecycle.LookAgain)
	}
	pending, ok := r.Between(now), true
	if r.Intent.Of(r, r.Step) || !s.Doable(p, r, r.Step) {
		pending.Step, ok = s.NextStep(p, r, r.Step)
	}
	if !ok {
		return s.exhaust(now)
	}
	c.Step = pending.Step
	return s.IssueOrHold(c, pending)
}

// finished ends the repair if the pod is gone, or if its sidecar is ready.
func (s *target) finished(now time.Time) (lifecycle.Decision, bool) {
	r, g := s.Record, s.seen
	if g == nil || !g.At.After(r.Since) {
		return lifecycle.Decision{}, false
	}
	switch {
	case g.Unknown != "":
	case s.moved():
		return s.End(remediations.OutcomeSuperseded, fmt.Sprintf("pod %s is no longer on this node", s.Name), now), true
	case g.Pod.UID != r.Pod.UID:
		return s.End(remediations.OutcomeSuperseded, fmt.Sprintf("pod %s was replaced by another pod of that name", s.Name), now), true
	case g.Health == HealthReady:
		return s.ready(now)
	}
	return lifecycle.Decision{}, false
}

// ready waits for the policy's proofFor before it ends the repair.
func (s *target) ready(now time.Time) (lifecycle.Decision, bool) {
	r, p := s.Record, s.PolicyOf(s.Record)
	if p == nil {
		return lifecycle.Decision{Verb: lifecycle.VerbWait, Recheck: r.Deadline, Message: r.WithoutPolicy()}, true
	}
	since := s.WellSince
	if since.IsZero() {
		since = s.seen.At
	}
	if s.seen.At.Sub(since) < p.ProofFor {
		d := lifecycle.Decision{Verb: lifecycle.VerbWait, Policy: p, Recheck: now.Add(proof), Well: true, Message: fmt.Sprintf("the sidecar is ready; the repair ends when it has been ready for %s", text.Duration(p.ProofFor))}
		d.Ask.Observation = now.Sub(s.seen.At) >= proof
		return d, true
	}
	if r.Withheld() || r.Intent.Outcome == remediations.CallRefused {
		return s.End(remediations.OutcomeSelfRecovered, "the sidecar is ready, but not by this repair: "+r.Intent.Why, now), true
	}
	if s.restarted() {
		return s.End(remediations.OutcomeSelfRecovered, "the sidecar is ready, but not by this repair: its container was restarted after the last attempt", now), true
	}
	return s.End(remediations.OutcomeRecovered, fmt.Sprintf("%s cured it: the sidecar answers that it is ready", remediations.LastDone(r)), now), true
}

// Rest removes an exhausted record if the alert has ended, the sidecar is ready, or the pod or its
// container is new: attempts do not count for a new one.
func (s *target) Rest(now time.Time) lifecycle.Decision {
	r, g := s.Record, s.seen
	switch {
	case s.Stale():
		return s.Look("querying Alertmanager whether the alert has ended")
	case s.Snapshot.BlindCause(s.Config) == "" && s.Snapshot.VerdictFor(r.Cause.Alert, s.Config, "").Gone:
		return lifecycle.Decision{Verb: lifecycle.VerbDrop, Message: "the alert has ended"}
	case g != nil && g.Unknown == "" && g.At.After(r.Since) && (s.moved() || g.Pod.UID != r.Pod.UID || s.restarted() || g.Health == HealthReady):
		return lifecycle.Decision{Verb: lifecycle.VerbDrop, Message: "the pod or its container was replaced, or the sidecar is ready"}
	}
	return s.LookAgain(lifecycle.Decision{Verb: lifecycle.VerbRest, Message: fmt.Sprintf("repair %s has run out of attempts; a person must check %s, or set %s=true", r.ID, s.Name, remediations.ResetKey)}, now, lifecycle.LookAgain)
}

func (s *target) exhaust(now time.Time) lifecycle.Decision {
	d := s.End(remediations.OutcomeExhausted, fmt.Sprintf("all attempts were made (%s) and the sidecar is not ready: %s", s.Record.Done, s.seen.words()), now)
	d.Record = s.Record.Exhausted(now)
	return d
}

// Elsewhere returns a message if the pod is gone or runs on another node.
func (s *target) Elsewhere() string {
	switch {
	case s.seen == nil || !s.moved():
		return ""
	case s.Record != nil:
		return fmt.Sprintf("pod %s is no longer on this node", s.Name)
	}
	return fmt.Sprintf("pod %s is not on this node", s.Name)
}

func (s *target) moved() bool {
	return s.seen.Unknown == "" && (s.seen.Pod.UID == "" || s.seen.Node != s.Node.Name)
}

// restarted reports whether the container has started again since the last attempt.
func (s *target) restarted() bool {
	i := s.Record.Intent
	return i != nil && !i.Started.IsZero() && remediations.Instant(s.seen.StartedAt).After(i.Started)
}

// leave removes the pod's alerts from this Node. The next poll of Alertmanager writes them on the
// Node where the pod runs.
func (s *target) leave(now time.Time) lifecycle.Decision {
	if s.Record != nil {
		return s.End(remediations.OutcomeSuperseded, fmt.Sprintf("pod %s is no longer on this node", s.Name), now)
	}
	d := lifecycle.Decision{Verb: lifecycle.VerbRest, Message: fmt.Sprintf("pod %s is not on this node", s.Name)}
	d.Prune = append(d.Prune, remediations.KeysOf(s.Alerts)...)
	return d
}

func (g *Observation) words() string {
	for _, said := range []string{g.Unknown, g.Held, g.Detail} {
		if said != "" {
			return text.Line(said, 200)
		}
	}
	return string(g.Health)
}
