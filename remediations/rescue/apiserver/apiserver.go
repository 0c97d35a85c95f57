// Package apiserver is what is true of the API servers alone, as a target of repairs: their repair is decided without them, from a
// journal on disk and looks at their hosts. It is pure, as the core is.
package apiserver

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Kind are the API servers, all of them: no label names one.
var Kind = remediations.TargetKind{
	Kind: remediations.KindAPIServer, Unknown: remediations.MisrouteUnknownNode,
	Name:     func(*remediations.Policy, map[string]string) (string, error) { return "", nil },
	Called:   "the API servers",
	Selects:  "hosts of API servers",
	NotAsked: "the policy is about the API servers, which are only restarted for an alert",
	Served:   func(c *remediations.Config) bool { return len(c.ControlPlaneHosts) > 0 },
}

// RescueFor is how long a rescue of the API servers may take, from its first restart on, where no policy says.
const RescueFor = 10 * time.Minute

// HostState is what a control-plane host's own API server says of itself.
type HostState string

const (
	// HostReady: it answers that it is ready.
	HostReady HostState = "Ready"
	// HostFailing: it answers that it is not, or there is surely none that answers.
	HostFailing HostState = "Failing"
	// HostUnknown: nothing can be said, which is never a fault.
	HostUnknown HostState = "Unknown"
)

// HostStates is the closed list.
var HostStates = []HostState{HostReady, HostFailing, HostUnknown}

// HostSight is what was seen of one control-plane host.
type HostSight struct {
	Host  string
	State HostState
	Why   string
	// At is when asking began.
	At time.Time
}

// SightOf says what an answer of a host's /readyz means: the status, or why there was none.
func SightOf(host string, status int, err error, at time.Time) HostSight {
	s := HostSight{Host: host, At: at, State: HostUnknown}
	switch {
	case err != nil:
		s.Why = text.Line(err.Error(), 160)
		if unanswered(err) {
			s.State = HostFailing
		}
	case status == 200:
		s.State, s.Why = HostReady, "it answers ready"
	case status >= 500 && status <= 599:
		s.State, s.Why = HostFailing, fmt.Sprintf("/readyz answers %d", status)
	default: // somebody answers, and does not say how it is: a proxy, or one who does not let us ask
		s.Why = fmt.Sprintf("/readyz answers %d", status)
	}
	return s
}

// unanswered says that there is nobody who answers. Anything else that can go wrong with a request says nothing of the
// API server: a certificate that does not verify, or no way there from here.
func unanswered(err error) bool {
	var slow interface{ Timeout() bool }
	if errors.As(err, &slow) && slow.Timeout() {
		return true
	}
	for _, sure := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, sure) {
			return true
		}
	}
	return false
}

// ready is the first host whose API server answers ready; empty: none does.
func (s *State) ready() string {
	for _, h := range s.Config.ControlPlaneHosts {
		if s.Sights[h].State == HostReady {
			return h
		}
	}
	return ""
}

// unseen says that some host was not looked at lately, or not since the last restart was issued.
func (s *State) unseen(now time.Time) bool {
	oldest := s.oldest()
	if r := s.Journal.Rescue; r != nil && r.last() != nil && oldest.Before(r.since()) {
		return true
	}
	return s.outdated(oldest, now)
}

// since is from when on a look says something of what was restarted last. Times on record lack their fraction of a second.
func (r *Rescue) since() time.Time {
	if r.Phase == remediations.PhaseVerifying {
		return r.Since.Add(time.Second)
	}
	return r.last().At.Add(time.Second)
}

// oldest is when the host was looked at of which that is longest ago; zero: one was not.
func (s *State) oldest() (oldest time.Time) {
	for i, h := range s.Config.ControlPlaneHosts {
		if seen := s.Sights[h].At; i == 0 || seen.Before(oldest) {
			oldest = seen
		}
	}
	return oldest
}

// again has the hosts looked at again and again while something is waited for.
func (s *State) again(d Decision, now time.Time) Decision {
	next := s.oldest().Add(rescueAgain)
	if !next.After(now) {
		d.AskSights = true
	} else if d.Recheck.IsZero() || next.Before(d.Recheck) {
		d.Recheck = next
	}
	return d
}

// stale says that what the Alertmanagers said is too old to act upon.
func (s *State) stale(now time.Time) bool {
	return s.Snapshot == nil || s.outdated(s.Snapshot.AskedAt, now)
}

// outdated says that what was seen then is from before a person last changed something in the state directory, too old, or by a
// clock that was set back since.
func (s *State) outdated(seen, now time.Time) bool {
	age := now.Sub(seen)
	return seen.Before(s.LookSince) || age > remediations.LookFor || age < 0
}

func (s *State) look(p *remediations.Policy, why string) Decision {
	return Decision{Verb: lifecycle.VerbLook, AskAlerts: true, AskSights: true, Policy: p, Message: why}
}
