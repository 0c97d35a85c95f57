// Package apiserver decides how to repair the API servers of the control plane, by restarts of the
// kubelets on their hosts. No API server may answer then, so it uses a journal on disk and
// observations of the hosts. The package is pure, like the core: it uses no client, no clock and no
// network.
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

// Kind is the kind of target for the API servers. All of them are one target, so no label of an
// alert names it.
var Kind = remediations.TargetKind{
	Kind: remediations.KindAPIServer, Unknown: remediations.MisrouteUnknownNode,
	Name:     func(*remediations.Policy, map[string]string) (string, error) { return "", nil },
	Called:   "the API servers",
	Selects:  "hosts of API servers",
	NotAsked: "the policy is about the API servers, which are only restarted for an alert",
	Served:   func(c *remediations.Config) bool { return len(c.ControlPlaneHosts) > 0 },
}

// RescueFor is how long the repair of the API servers may take from its first restart, if the
// policy sets no timeout.
const RescueFor = 10 * time.Minute

// HostState is the state of a host's API server, according to its own /readyz.
type HostState string

const (
	// HostReady means that the API server answers that it is ready.
	HostReady HostState = "Ready"
	// HostFailing means that the API server answers that it is not ready, or certainly does not
	// answer.
	HostFailing HostState = "Failing"
	// HostUnknown never counts as a fault.
	HostUnknown HostState = "Unknown"
)

// HostSight is the last observation of the API server on one control-plane host.
type HostSight struct {
	Host  string
	State HostState
	Why   string
	// When the query of /readyz began.
	At time.Time
}

// SightOf returns the observation for one query of a host's /readyz. err is why there was no
// answer, or nil.
func SightOf(host string, status int, err error, at time.Time) HostSight {
	s := HostSight{Host: host, At: at, State: HostUnknown}
	switch {
	case err != nil:
		s.Why = text.Line(err.Error(), 160)
		if unanswered(err) {
			s.State = HostFailing
		}
	case status == 200:
		s.State, s.Why = HostReady, "the API server answers ready"
	case status >= 500 && status <= 599:
		s.State, s.Why = HostFailing, fmt.Sprintf("/readyz answers %d", status)
	default: // a proxy answers, or an API server that refuses the request, so the state is unknown
		s.Why = fmt.Sprintf("/readyz answers %d", status)
	}
	return s
}

// Other errors do not show the state of the API server, for example a certificate that cannot be
// verified.
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

// The first in the configuration's order, or "".
func (s *State) ready() string {
	for _, h := range s.Config.ControlPlaneHosts {
		if s.Sights[h].State == HostReady {
			return h
		}
	}
	return ""
}

// unseen reports whether the observation of a host is missing, too old, or from before the last
// restart.
func (s *State) unseen(now time.Time) bool {
	oldest := s.oldest()
	if r := s.Journal.Rescue; r != nil && r.last() != nil && oldest.Before(r.since()) {
		return true
	}
	return s.outdated(oldest, now)
}

// The earliest time at which an observation can show the effect of the last restart. One second is
// added, because recorded times have no fractions of a second.
func (r *Rescue) since() time.Time {
	if r.Phase == remediations.PhaseVerifying {
		return r.Since.Add(time.Second)
	}
	return r.last().At.Add(time.Second)
}

// oldest returns zero if a host has not been observed.
func (s *State) oldest() (oldest time.Time) {
	for i, h := range s.Config.ControlPlaneHosts {
		if seen := s.Sights[h].At; i == 0 || seen.Before(oldest) {
			oldest = seen
		}
	}
	return oldest
}

// again is for a rescue that waits: the hosts are observed again when the last observation is
// rescueAgain old.
func (s *State) again(d Decision, now time.Time) Decision {
	next := s.oldest().Add(rescueAgain)
	if !next.After(now) {
		d.AskSights = true
	} else if d.Recheck.IsZero() || next.Before(d.Recheck) {
		d.Recheck = next
	}
	return d
}

func (s *State) stale(now time.Time) bool {
	return s.Snapshot == nil || s.outdated(s.Snapshot.AskedAt, now)
}

// outdated reports whether an observation is too old, from before a person changed a file in the
// state directory, or from before the clock was set back.
func (s *State) outdated(seen, now time.Time) bool {
	age := now.Sub(seen)
	return seen.Before(s.LookSince) || age > remediations.LookFor || age < 0
}

func (s *State) look(p *remediations.Policy, why string) Decision {
	return Decision{Verb: lifecycle.VerbLook, AskAlerts: true, AskSights: true, Policy: p, Message: why}
}
