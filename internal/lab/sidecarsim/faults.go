package sidecarsim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is a fault of a sidecar or of its proxy. The sidecar does nothing for the affected call,
// unless the fault is in After or its comment says otherwise.
type Fault struct {
	name  string
	after bool
	// At most one of these is set.
	end    func(w http.ResponseWriter, r *http.Request) // writes an answer of its own, or none
	reply  *reply
	delay  time.Duration
	hang   bool
	wedged bool
	late   time.Duration
}

// String returns the fault's name, as in Call.Fault.
func (f Fault) String() string { return f.name }

// After makes a fault happen after the work is done: the gate opens, but the caller gets no
// success.
func After(f Fault) Fault {
	f.name, f.after = "after the work: "+f.name, true
	return f
}

// Hang delays the answer until Heal. Then the call is served, even if the caller has disconnected,
// so a caller that gave up does not know whether it was. If the sidecar ends first, the call has no
// effect.
func Hang() Fault { return Fault{name: "hang", hang: true} }

// Cut closes the connection without an answer.
func Cut() Fault {
	return Fault{name: "cut", end: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
}

// Torn closes the connection in the middle of an answer with this status.
func Torn(status int) Fault {
	return Fault{name: "torn", end: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"status":`))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}}
}

// Slow does the work at once and answers later.
func Slow(delay time.Duration) Fault { return Fault{name: "slow", after: true, delay: delay} }

// Answer answers every request with this status and body.
func Answer(status int, body any) Fault {
	return Fault{name: "answer", reply: &reply{status: status, body: body}}
}

// Unauthorized answers as the proxy does to a caller that it does not know.
func Unauthorized() Fault {
	return Fault{name: "unauthorized", reply: &reply{status: http.StatusUnauthorized, body: text("Unauthorized")}}
}

// Forbidden answers as the proxy does to a caller without the right.
func Forbidden() Fault {
	return Fault{name: "forbidden", reply: &reply{status: http.StatusForbidden, body: text("Forbidden")}}
}

// Redirect redirects the caller with 307. A client that follows it repeats the request there,
// including the token.
func Redirect(to string) Fault {
	return Fault{name: "redirect", end: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}}
}

// Oversize answers with this status and this many bytes of valid but useless JSON.
func Oversize(status, bytes int) Fault {
	return Fault{name: "oversize", end: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		chunk := []byte(strings.Repeat(" ", 64<<10))
		for written := 0; written < bytes; written += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`{}`))
	}}
}

// Wedged accepts tasks, stores their ids, and leaves the gate unchanged. It is a fault of Submit.
func Wedged() Fault { return Fault{name: "wedged", wedged: true} }

// Late accepts a task, and carries it out later. It is a fault of Submit.
func Late(by time.Duration) Fault { return Fault{name: "late", late: by} }

// An empty key means all pods.
type target struct {
	key string
	op  Op
}

type injected struct {
	fault  Fault
	left   int           // the number of calls that the fault still affects; negative means all
	healed chan struct{} // closed by Heal
}

// Inject gives the fault to every call of the operation until Heal, also to calls of the pod's
// successors. An empty key means every pod.
func (s *Server) Inject(key string, op Op, f Fault) { s.InjectNext(key, op, -1, f) }

// InjectNext gives the fault to the next n calls. Faults are queued. They come before faults of
// Any, and a pod's faults come before those of all pods.
func (s *Server) InjectNext(key string, op Op, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := target{key, op}
	s.faults[t] = append(s.faults[t], &injected{f, n, make(chan struct{})})
}

// Heal ends the faults of these operations of the pod, or all its faults. An empty key means the
// faults of every pod. Calls that hang continue.
func (s *Server) Heal(key string, ops ...Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, queue := range s.faults {
		if t.key != key || len(ops) > 0 && !slices.Contains(ops, t.op) {
			continue
		}
		for _, i := range queue {
			close(i.healed)
		}
		delete(s.faults, t)
	}
}

// HealAll ends every fault.
func (s *Server) HealAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, queue := range s.faults {
		for _, i := range queue {
			close(i.healed)
		}
		delete(s.faults, t)
	}
}

// The channel is closed when the fault ends.
func (s *Server) takeFault(key string, op Op) (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range []target{{key, op}, {key, Any}, {"", op}, {"", Any}} {
		for _, i := range s.faults[t] {
			if i.left == 0 {
				continue // no further call gets the fault, but calls may still hang in it
			}
			if i.left > 0 {
				i.left--
			}
			return i.fault, i.healed
		}
	}
	return Fault{}, nil
}
