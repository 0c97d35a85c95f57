package remediations

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

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
		s.Why = clip(err.Error(), 160)
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
