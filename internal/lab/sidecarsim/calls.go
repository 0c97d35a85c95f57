package sidecarsim

import (
	"context"
	"slices"
	"time"
)

// Op names an operation of the sidecar's API.
type Op string

const (
	Any       Op = "any"
	Health    Op = "healthz" // and startupz, which is the same
	Livez     Op = "livez"
	Status    Op = "status"
	Metrics   Op = "metrics"
	Submit    Op = "submit" // POST /v0/tasks
	ListTasks Op = "tasks"
	GetTask   Op = "task"
	UnknownOp Op = "unknown" // a path that the sidecar does not serve
)

// Call is one request: what arrived, who sent it, what the sidecar did, and what it answered. It
// never contains a token.
type Call struct {
	Number int // counted from 0, in the order of arrival
	At     time.Time
	Op     Op
	Method string
	Path   string
	Body   string
	Pod    Pod    // the pod that received it
	Remote string // the caller's address

	// Token is true if the caller sent a bearer token. User is its owner, or empty if unknown.
	// RemoteUser is the header X-Remote-User, which only the proxy may set.
	Token            bool
	User, RemoteUser string
	// TaskID and TaskType describe the posted task. The sidecar has chosen TaskID if the caller
	// sent none.
	TaskID, TaskType string
	// Known means that the ID was already on the volume, so that nothing was done.
	Known bool

	// Done describes what the sidecar did, if anything.
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
func (s *Server) Calls() []Call { return s.CallsTo("", Any) }

// CallsTo returns the calls to one operation of one pod, including earlier pods with the same name.
// An empty key means all pods.
func (s *Server) CallsTo(key string, op Op) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool {
		return op != Any && c.Op != op || key != "" && c.Pod.Key() != key
	})
}

// Done returns the calls that made the sidecar do something, also if their callers got an error or
// no answer.
func (s *Server) Done(key string) []Call {
	return slices.DeleteFunc(s.CallsTo(key, Submit), func(c Call) bool { return c.Done == "" })
}

// AwaitCall returns the first call that matches, and waits for one if there is none. It checks a
// call when it arrives, when its work is done, and when it is answered.
func (s *Server) AwaitCall(ctx context.Context, match func(Call) bool) (Call, error) {
	var found Call
	err := s.Await(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.calls, match)
		if i >= 0 {
			found = s.calls[i]
		}
		return i >= 0
	})
	return found, err
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
