package remediations

import (
	"fmt"
	"time"
)

// await asks the sidecar itself, again and again, whether it is ready.
func (s *SidecarState) await(now time.Time) Decision {
	if d, over := s.finished(now); over {
		return d
	}
	d := Decision{Verb: Wait, Policy: s.PolicyOf(s.Record), Recheck: s.Record.Deadline, Message: "the sidecar is not ready yet"}
	return s.LookAgain(d, now, sidecarProof)
}

// proceed goes on after an attempt whose proof did not come.
func (s *SidecarState) proceed(now time.Time) Decision {
	r := s.Record
	p := s.PolicyOf(r)
	if p == nil || p.Kind != KindSidecar || p.Mode == ModeOff {
		return s.End(Cancelled, fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now)
	}
	if !s.Config.Serves(p) {
		return s.End(Cancelled, "no provider of sidecars is configured any more", now)
	}
	if r.Intent.Ahead(now) {
		if s.NeverIssued(r, now) {
			return s.End(Cancelled, r.FromTheFuture(), now)
		}
		return s.WaitForClock(r, p, sidecarProof, now)
	}
	if s.Stale() {
		return s.Look("asking Alertmanager before the next attempt")
	}
	if s.Unseen(now, LookAgain) || !s.Sighting.At.After(r.Intent.At) {
		return Decision{Verb: Look, Ask: Ask{Sighting: true}, Policy: p, Message: "looking at the sidecar before the next attempt"}
	}
	if d, over := s.finished(now); over {
		return d
	}
	c := s.Candidate(p, AlertOf(s.Alerts, r.Cause), r.Cause.Alert, r.Step, now)
	c.Repair = r.ID
	if d, ok := r.AfterWithheld(p, sidecarApart, now); ok && !c.Resolved() {
		return s.LookAgain(d, now, LookAgain)
	}
	switch next := r.Intent.At.Add(sidecarApart); {
	case c.Resolved():
		return s.End(Superseded, "its alert is over, and nobody knows the sidecar to wait: "+s.Sighting.words(), now)
	case r.Phase == Pending && !now.Before(r.Deadline):
		return s.End(Cancelled, fmt.Sprintf("held for %s: %s", PendingFor, r.Hold.Words()), now)
	case now.Before(next):
		return s.LookAgain(Decision{Verb: Wait, Policy: p, Recheck: next, Message: "the next attempt waits its time"}, now, LookAgain)
	}
	pending, ok := r.Between(now), true
	if r.Intent.Of(r, r.Step) || !s.Doable(p, r.Step) {
		pending.Step, ok = s.NextStep(p, r.Step)
	}
	if !ok {
		return s.exhaust(now)
	}
	c.Step = pending.Step
	return act(&s.Target, c, pending)
}

// finished says that the repair is over: its pod is gone, or its sidecar ready.
func (s *SidecarState) finished(now time.Time) (Decision, bool) {
	r, g := s.Record, s.Sighting
	if g == nil || !g.At.After(r.Since) {
		return Decision{}, false
	}
	switch {
	case g.Unknown != "":
	case s.moved():
		return s.End(Superseded, fmt.Sprintf("pod %s is no longer on this node", s.Name), now), true
	case g.Pod.UID != r.Pod.UID:
		return s.End(Superseded, fmt.Sprintf("pod %s was replaced by another of its name", s.Name), now), true
	case g.Health == HealthReady:
		return s.ready(now)
	}
	return Decision{}, false
}

// ready ends the repair once the sidecar has been ready for as long as its policy asks.
func (s *SidecarState) ready(now time.Time) (Decision, bool) {
	r, p := s.Record, s.PolicyOf(s.Record)
	if p == nil {
		return Decision{Verb: Wait, Recheck: r.Deadline, Message: r.WithoutPolicy()}, true
	}
	since := s.WellSince
	if since.IsZero() {
		since = s.Sighting.At
	}
	if s.Sighting.At.Sub(since) < p.ProofFor {
		d := Decision{Verb: Wait, Policy: p, Recheck: now.Add(sidecarProof), Well: true, Message: fmt.Sprintf("the sidecar is ready; it counts once that has held for %s", p.ProofFor)}
		d.Ask.Sighting = now.Sub(s.Sighting.At) >= sidecarProof
		return d, true
	}
	if r.Withheld() || r.Intent.Outcome == CallRefused {
		return s.End(SelfRecovered, "the sidecar is ready, but not by this repair: "+r.Intent.Why, now), true
	}
	return s.End(Recovered, fmt.Sprintf("%s cured it: the sidecar answers that it is ready", LastDone(r)), now), true
}

// rest leaves an exhausted repair alone until it is about nothing any more: another pod, a sidecar that is ready, no
// alert.
func (s *SidecarState) rest(now time.Time) Decision {
	r, g := s.Record, s.Sighting
	switch {
	case s.Stale():
		return s.Look("asking Alertmanager whether the alert is over")
	case s.Word.BlindCause(s.Config) == "" && s.Word.About(r.Cause.Alert, s.Config, "").Gone:
		return Decision{Verb: Drop, Message: "the alert is over"}
	case g != nil && g.Unknown == "" && g.At.After(r.Since) && (s.moved() || g.Pod.UID != r.Pod.UID || g.Health == HealthReady):
		return Decision{Verb: Drop, Message: "the pod is another one, or its sidecar is ready"}
	}
	return s.LookAgain(Decision{Verb: Rest, Message: fmt.Sprintf("repair %s has run out of attempts; a person must look at %s, or set %s=true", r.ID, s.Name, ResetKey)}, now, LookAgain)
}

func (s *SidecarState) exhaust(now time.Time) Decision {
	d := s.End(OutcomeExhausted, fmt.Sprintf("all attempts were made (%s) and the sidecar is not ready: %s", joined(s.Record.Done), s.Sighting.words()), now)
	d.Record = s.Record.Exhausted(now)
	return d
}

// moved says that the pod is gone, or hosted by another node.
func (s *SidecarState) moved() bool {
	return s.Sighting.Unknown == "" && (s.Sighting.Pod.UID == "" || s.Sighting.Node != s.Node.Name)
}

// leave takes the alerts about a pod that is not here off the Node: the poll brings them to the one that hosts it.
func (s *SidecarState) leave(now time.Time) Decision {
	if s.Record != nil {
		return s.End(Superseded, fmt.Sprintf("pod %s is no longer on this node", s.Name), now)
	}
	d := Decision{Verb: Rest, Message: fmt.Sprintf("pod %s is not on this node", s.Name)}
	d.Prune = append(d.Prune, KeysOf(s.Alerts)...)
	return d
}

// words are what a sighting says, for people.
func (g *Sighting) words() string {
	for _, text := range []string{g.Unknown, g.Held, g.Detail} {
		if text != "" {
			return clip(text, 200)
		}
	}
	return string(g.Health)
}
