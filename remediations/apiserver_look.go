package remediations

import "time"

// ready is the first host whose API server answers ready; empty: none does.
func (s *APIServerState) ready() string {
	for _, h := range s.Config.ControlPlaneHosts {
		if s.Sights[h].State == HostReady {
			return h
		}
	}
	return ""
}

// unseen says that some host was not looked at lately, or not since the last restart was issued.
func (s *APIServerState) unseen(now time.Time) bool {
	oldest := s.oldest()
	if r := s.Journal.Rescue; r != nil && r.last() != nil && oldest.Before(r.since()) {
		return true
	}
	return s.outdated(oldest, now)
}

// since is from when on a look says something of what was restarted last. Times on record lack their fraction of a second.
func (r *Rescue) since() time.Time {
	if r.Phase == Verifying {
		return r.Since.Add(time.Second)
	}
	return r.last().At.Add(time.Second)
}

// oldest is when the host was looked at of which that is longest ago; zero: one was not.
func (s *APIServerState) oldest() (oldest time.Time) {
	for i, h := range s.Config.ControlPlaneHosts {
		if seen := s.Sights[h].At; i == 0 || seen.Before(oldest) {
			oldest = seen
		}
	}
	return oldest
}

// again has the hosts looked at again and again while something is waited for.
func (s *APIServerState) again(d APIServerDecision, now time.Time) APIServerDecision {
	next := s.oldest().Add(rescueAgain)
	if !next.After(now) {
		d.AskSights = true
	} else if d.Recheck.IsZero() || next.Before(d.Recheck) {
		d.Recheck = next
	}
	return d
}

// stale says that what the Alertmanagers said is too old to act upon.
func (s *APIServerState) stale(now time.Time) bool {
	return s.Word == nil || s.outdated(s.Word.AskedAt, now)
}

// outdated says that what was seen then is from before a person last changed something in the state directory, too old, or by a
// clock that was set back since.
func (s *APIServerState) outdated(seen, now time.Time) bool {
	age := now.Sub(seen)
	return seen.Before(s.LookSince) || age > lookFor || age < 0
}

func (s *APIServerState) look(p *Policy, why string) APIServerDecision {
	return APIServerDecision{Verb: Look, AskAlerts: true, AskSights: true, Policy: p, Message: why}
}
