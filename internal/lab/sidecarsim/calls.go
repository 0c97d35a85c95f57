package sidecarsim

import (
	"context"
	"slices"
	"time"
)

// Op names an operation of the sidecar's API.
type Op string

// The operations, and Any for all of them.
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

// Call is one request: what came, who sent it, what was done and what was
// answered. A token is never in it.
type Call struct {
	Number int // from 0, in the order of arrival
	At     time.Time
	Op     Op
	Method string
	Path   string
	Body   string
	Pod    Pod    // that it came to
	Remote string // the caller's address

	// Token says that the caller sent a bearer token, User whose it is; empty:
	// nobody asked, or nobody knows it. RemoteUser is the header of that name,
	// which is the proxy's to set: no caller may send it.
	Token            bool
	User, RemoteUser string
	// TaskID and TaskType are of the task that was posted; TaskID is the
	// sidecar's own where the caller gave none.
	TaskID, TaskType string
	// Known says that the volume knew the id, so that nothing was done.
	Known bool

	// Done says what the sidecar did for it, in words; empty: nothing.
	Done string
	// Fault names the fault that was injected; empty: none.
	Fault string
	// Status and Answer are what was answered. Status is 0 while the call is
	// under way, and NoAnswer if it ended without an answer.
	Status int
	Answer string
}

// NoAnswer is the Status of a call whose connection ended without an answer.
const NoAnswer = -1

// Calls returns all calls, in the order of their arrival.
func (s *Server) Calls() []Call { return s.CallsTo("", Any) }

// CallsTo returns the calls to one operation of one pod, past pods of that name
// included; an empty key: of all pods.
func (s *Server) CallsTo(key string, op Op) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool {
		return op != Any && c.Op != op || key != "" && c.Pod.Key() != key
	})
}

// Done returns the calls for which the sidecar did something: what really
// happened, whatever the caller was told.
func (s *Server) Done(key string) []Call {
	return slices.DeleteFunc(s.CallsTo(key, Submit), func(c Call) bool { return c.Done == "" })
}

// AwaitCall returns the first call that matches, waiting for one if need be. A
// call is looked at when it arrives, when its work is done and when it is
// answered.
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

// record appends a call and returns its number.
func (s *Server) record(c Call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Number = len(s.calls)
	s.calls = append(s.calls, c)
	s.announce()
	return c.Number
}

// amend changes a call that was recorded.
func (s *Server) amend(number int, change func(*Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.calls[number])
	s.announce()
}
