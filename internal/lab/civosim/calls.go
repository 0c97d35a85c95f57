package civosim

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Op names an operation of the API.
type Op string

const (
	Any            Op = "any"
	ListInstances  Op = "instances"
	GetInstance    Op = "instance"
	HardReboots    Op = "hard_reboots"
	SoftReboots    Op = "soft_reboots"
	Recycle        Op = "recycle"
	ListPools      Op = "pools"
	GetPool        Op = "pool"
	UpdatePool     Op = "update_pool"
	DeletePoolNode Op = "delete_pool_instance"
	UnknownOp      Op = "unknown" // a path that the simulator does not serve
)

// Call is one request: what arrived, what the provider did, and what it answered. It never contains
// the API key.
type Call struct {
	Number    int // counted from 0, in the order of arrival
	At        time.Time
	Op        Op
	Method    string
	Path      string
	Query     url.Values
	Body      string
	UserAgent string
	// Done describes what the provider did, if anything.
	Done string
	// Fault is the name of the injected fault, if any.
	Fault string
	// Status is 0 while the call is running, and NoAnswer if it ended without an answer.
	Status int
	Answer string
}

// NoAnswer is the Status of a call whose connection ended without an answer.
const NoAnswer = -1

// Calls returns all calls, in the order of their arrival.
func (s *Server) Calls() []Call { return s.CallsTo(Any) }

// CallsTo returns the calls to one operation.
func (s *Server) CallsTo(op Op) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return op != Any && c.Op != op })
}

// Done returns those calls to an operation that made the provider do something, whatever it
// answered.
func (s *Server) Done(op Op) []Call {
	return slices.DeleteFunc(s.CallsTo(op), func(c Call) bool { return c.Done == "" })
}

// AwaitCall returns the first call that matches, and waits for one if there is none. It checks a
// call when it arrives, when its work is done, and when it is answered.
func (s *Server) AwaitCall(ctx context.Context, match func(Call) bool) (Call, error) {
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.calls, match)
		if i >= 0 {
			defer s.mu.Unlock()
			return s.calls[i], nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return Call{}, fmt.Errorf("waiting for a call to civosim: %w", ctx.Err())
		case <-s.stopping.Done():
			return Call{}, fmt.Errorf("waiting for a call to civosim: it closed")
		}
	}
}

func (s *Server) record(c Call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Number = len(s.calls)
	s.calls = append(s.calls, c)
	s.announce()
	return c.Number
}

func (s *Server) amend(number int, change func(*Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.calls[number])
	s.announce()
}

func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}
