package apiserver

import (
	"fmt"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// observing reports whether nothing was restarted because the policy only observes.
func (r *Rescue) observing() bool { return r != nil && r.Observed != nil && len(r.Hosts) == 0 }

// Only the first restart is stored, because it is unknown what would have followed it.
func (r *Rescue) observe(host string, now time.Time) {
	if r.Observed == nil && len(r.Hosts) == 0 {
		r.Observed = &HostTry{Host: host, Attempt: fmt.Sprintf("%s-%d", r.ID, r.Issued+1), At: remediations.Instant(now)}
	}
}

// observedOver ends a rescue that was only observed if its policy is off, its alert has ended, or
// its deadline has passed.
func (s *State) observedOver(now time.Time) (Decision, bool) {
	r := s.Journal.Rescue
	p := s.Config.Policy(r.Policy)
	switch {
	case !s.serves(p):
		return s.observed(fmt.Sprintf("policy %s is no longer configured, or off", r.Policy), now), true
	case !now.Before(r.Deadline):
		return s.observed(fmt.Sprintf("the alert has been firing for %s since then", text.Duration(remediations.PendingFor)), now), true
	case s.stale(now):
		return Decision{}, false // Alertmanager must be polled first
	}
	a := remediations.AlertOf(s.Alerts, r.Cause)
	if a == nil {
		own := r.alert()
		a = &own
	}
	switch c := s.candidate(p, a, false, now); {
	case !c.over(a):
		return Decision{}, false
	case s.unseen(now): // the report says whether an API server is ready again
		return Decision{Verb: lifecycle.VerbLook, AskSights: true, Policy: p, Message: "observing the control plane's hosts"}, true
	}
	return s.observed("the alert has ended", now), true
}

// There is at most one rescue at a time, so one that was only observed ends when d begins another.
func (s *State) givesWay(d Decision, now time.Time) Decision {
	r := s.Journal.Rescue
	if !r.observing() || len(d.Write) == 0 || d.Write[0].Rescue == nil || d.Write[0].Rescue.ID == r.ID {
		return d
	}
	return s.observed("a rescue by policy "+d.Policy.Name+" begins instead", now)
}

// The host's API server must have been ready for the policy's proofFor.
func (s *State) observedWell(p *remediations.Policy, host string, now time.Time) Decision {
	if !s.matured(p, host) {
		d := Decision{Verb: lifecycle.VerbWait, Policy: p, Well: true, Message: fmt.Sprintf("the API server of %s answers ready; the rescue ends when this has been so for %s", host, text.Duration(p.ProofFor))}
		return s.again(d, now)
	}
	return s.observed("", now)
}

// why is empty if the rescue ends because an API server is ready.
func (s *State) observed(why string, now time.Time) Decision {
	r := s.Journal.Rescue
	p := s.Config.Policy(r.Policy)
	at, name := r.Observed.At, r.Cause.Alert
	w := &remediations.Would{Step: remediations.Attempt{Name: restartKubelet.Name, Number: 1}, At: at, Until: at.Add(s.waitFor(p)), IllSince: remediations.Earlier(r.Began, at)}
	if a := remediations.AlertOf(s.Alerts, r.Cause); a != nil {
		w.IllSince, name = remediations.Instant(remediations.Earlier(a.StartsAt, w.IllSince)), a.Name
	}
	ready := s.ready()
	if ready != "" && !s.unseen(now) {
		w.WellAt = remediations.Instant(now)
	}
	said := fmt.Sprintf("%s of %s would have been issued at %s, for alert %s", restartKubelet.Name, r.Observed.Host, at.Format(time.RFC3339), name)
	switch ill := remediations.Instant(now).Sub(w.IllSince); {
	case w.Unnecessary():
		said += fmt.Sprintf("; the API server of %s was ready after %s without the restart, before the step's wait had ended: the restart would have been unnecessary", ready, text.Duration(ill))
	case !w.WellAt.IsZero():
		said += fmt.Sprintf("; the API server of %s was ready after %s without the restart, when the step's wait had ended", ready, text.Duration(ill))
	default:
		said += fmt.Sprintf("; after %s no API server was seen ready", text.Duration(ill))
	}
	if why != "" {
		said += "; " + why
	}
	d := s.end(remediations.OutcomeObserved, said, now)
	d.Ended.Would, d.Ended.ObservedOn = w, r.Observed.Host
	return d
}
