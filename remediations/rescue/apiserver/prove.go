package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// If this process did not make the last call, an earlier process may have made it, so the call
// counts as made.
func (s *State) settle(now time.Time) Decision {
	r := s.Journal.Rescue.clone()
	t := r.last()
	p := s.Config.Policy(r.Policy)
	known := RescueCall{Outcome: remediations.CallUnknown, Why: "the call's answer is unknown, because Drydock was restarted"}
	if c := s.Call; c != nil && c.Attempt == t.Attempt {
		if c.Outcome == "" && now.Before(r.Deadline) {
			return Decision{Verb: lifecycle.VerbWait, Recheck: r.Deadline, Policy: p, Message: "the call is in progress"}
		}
		known = *c
		if c.Outcome == "" {
			known.Outcome, known.Why = remediations.CallUnknown, "the call had no answer in time"
		}
	}
	d := Decision{Verb: lifecycle.VerbVerify, Policy: p}
	r.Since = remediations.Instant(now)
	t.Outcome, t.Why, t.Evidence = known.Outcome, text.Line(known.Why, 300), remediations.EvidenceOf(known.Evidence)
	d.Message = fmt.Sprintf("%s of %s: %s", restartKubelet.Name, t.Host, outcomeOf(*t))
	switch {
	case known.Withheld:
		r.Hosts = r.Hosts[:len(r.Hosts)-1]
		r.Phase, r.Deadline = remediations.PhasePending, r.Over
		if len(r.Hosts) == 0 {
			r.Over, r.Deadline = time.Time{}, remediations.Instant(now.Add(remediations.PendingFor))
		}
	case known.Outcome == remediations.CallRefused && !known.Busy:
		r.Phase, r.Deadline = remediations.PhasePending, r.Over
	default:
		r.Phase, r.Deadline = remediations.PhaseVerifying, remediations.Instant(now.Add(s.waitFor(p)))
		if r.Over.Before(r.Deadline) {
			r.Deadline = r.Over
		}
		d.Message += "; Drydock watches the hosts until " + r.Deadline.Format(time.RFC3339)
	}
	d.Write = []RescueEntry{{Rescue: r}}
	return d
}

// The wait for the effect of one restart, before the next host is restarted.
func (s *State) waitFor(p *remediations.Policy) time.Duration {
	if p != nil && len(p.Plan) > 0 && p.Plan[0].Wait > 0 {
		return p.Plan[0].Wait
	}
	return time.Minute
}

// The rescue ends once an API server has been ready for the policy's proofFor, and waits for that
// at most until Rescue.Over.
func (s *State) well(p *remediations.Policy, host string, now time.Time) Decision {
	r := s.Journal.Rescue
	matured := s.matured(p, host)
	if !matured && now.Before(r.Over) {
		d := Decision{Verb: lifecycle.VerbWait, Policy: p, Well: true, Message: fmt.Sprintf("the API server of %s answers ready; the rescue ends when this has been so for %s", host, text.Duration(p.ProofFor))}
		return s.again(d, now)
	}
	var cured []string // it is unknown which of these restarts helped
	for _, t := range r.Hosts {
		if matured && t.Outcome == remediations.CallAccepted && s.Sights[t.Host].State == HostReady {
			cured = append(cured, t.Host)
		}
	}
	if len(cured) > 0 {
		return s.end(remediations.OutcomeRecovered, fmt.Sprintf("an API server has answered ready for %s; ready since their kubelet was restarted: %s", text.Duration(p.ProofFor), strings.Join(cured, ", ")), now)
	}
	why := "this rescue did not cause that: it did not restart this host, or the outcome of the restart is unknown"
	if !matured {
		why = fmt.Sprintf("the rescue's time has ended before this was so for %s", text.Duration(p.ProofFor))
	}
	return s.end(remediations.OutcomeSelfRecovered, fmt.Sprintf("the API server of %s answers ready; %s", host, why), now)
}

// The last observation of host counts, and not the time now.
func (s *State) matured(p *remediations.Policy, host string) bool {
	return !s.WellSince.IsZero() && !s.Sights[host].At.Before(s.WellSince.Add(p.ProofFor))
}

func (s *State) needless(p *remediations.Policy, host string, now time.Time) Decision {
	why := fmt.Sprintf("the API server of %s answers ready, so Drydock restarts no host", host)
	d := Decision{Verb: lifecycle.VerbRest, Policy: p, Message: why}
	if r := s.Journal.Rescue; r.observing() {
		return s.observedWell(p, host, now)
	} else if r != nil {
		d = s.drop(why)
	}
	d.Recheck = now.Add(rescueIdle)
	return d
}

// The journal keeps nothing of a rescue that has restarted nothing.
func (s *State) drop(why string) Decision {
	r := s.Journal.Rescue
	return Decision{Verb: lifecycle.VerbDrop, Policy: s.Config.Policy(r.Policy), Message: why, Write: []RescueEntry{{Dropped: r.ID}}}
}

func (s *State) end(o remediations.Outcome, why string, now time.Time) Decision {
	r := s.Journal.Rescue
	e := &EndedRescue{Hosts: slices.Clone(r.Hosts), Entry: remediations.Entry{
		ID: r.ID, Target: string(remediations.KindAPIServer), Policy: r.Policy, Outcome: o, Steps: remediations.Attempts{}, Began: r.Began, Ended: remediations.Instant(now), Cause: r.Cause.Alert, Why: text.Line(why, 300),
	}}
	for i := range r.Hosts {
		e.Steps = append(e.Steps, remediations.Attempt{Name: restartKubelet.Name, Number: i + 1})
	}
	return Decision{Verb: lifecycle.VerbEnd, Policy: s.Config.Policy(r.Policy), Message: why, Ended: e, Write: []RescueEntry{{Ended: e}}}
}

// The rescue remains in the journal until a person has checked the hosts and resets it.
func (s *State) exhaust(p *remediations.Policy, why string, now time.Time) Decision {
	r := s.Journal.Rescue.clone()
	var tried []string
	for _, t := range r.Hosts {
		tried = append(tried, fmt.Sprintf("%s (%s)", t.Host, outcomeOf(t)))
	}
	d := s.end(remediations.OutcomeExhausted, fmt.Sprintf("%s; Drydock tried %s", why, text.Line(strings.Join(tried, ", "), 200)), now)
	d.Policy = p
	r.Phase, r.Since, r.Deadline, r.Hold = remediations.PhaseExhausted, remediations.Instant(now), time.Time{}, nil
	d.Write = append([]RescueEntry{{Rescue: r}}, d.Write...)
	return d
}

// Only a person's reset removes an exhausted rescue. The process may have stopped before it stored
// the rescue's end.
func (s *State) rest(now time.Time) Decision {
	r := s.Journal.Rescue
	if !slices.ContainsFunc(s.Journal.Ended, func(e EndedRescue) bool { return e.ID == r.ID }) {
		return s.end(remediations.OutcomeExhausted, "Drydock tried all hosts, and no API server answers", now)
	}
	return Decision{Verb: lifecycle.VerbRest, Policy: s.Config.Policy(r.Policy), Message: fmt.Sprintf("rescue %s has run out of hosts; create a file named reset in the state directory when the control plane works again", r.ID)}
}
