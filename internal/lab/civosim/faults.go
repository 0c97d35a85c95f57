package civosim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is a fault of the simulated provider. The provider does nothing for the affected call,
// unless the fault is in After or is about a list.
type Fault struct {
	name  string
	after bool
	// Exactly one of these is set.
	end   func(s *Server, w http.ResponseWriter, r *http.Request) // writes an answer of its own, or none
	reply *reply
	list  func([]Instance) []Instance
	pools func([]poolJSON) []poolJSON
	delay time.Duration
}

// String returns the fault's name, as in Call.Fault.
func (f Fault) String() string { return f.name }

// After makes a fault happen after the work is done: the machine reboots, but the caller gets no
// success.
func After(f Fault) Fault {
	f.name, f.after = "after the work: "+f.name, true
	return f
}

// Hang never answers. The call ends when the caller disconnects or the simulator is closed.
func Hang() Fault {
	return Fault{name: "hang", end: func(s *Server, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-s.stopping.Done():
		}
		panic(http.ErrAbortHandler)
	}}
}

// Cut closes the connection without an answer.
func Cut() Fault {
	return Fault{name: "cut", end: func(*Server, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
}

// Slow does the work at once and answers later.
func Slow(delay time.Duration) Fault { return Fault{name: "slow", after: true, delay: delay} }

// HTML answers with an HTML page in place of JSON, like a proxy between the caller and the API.
func HTML(status int) Fault {
	return Fault{name: "html", end: func(_ *Server, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		// The page contains the request's headers, as the pages of some proxies do.
		_, _ = w.Write([]byte("<html><body><h1>Sorry</h1><pre>Authorization: " + r.Header.Get("Authorization") + "</pre></body></html>"))
	}}
}

// Oversize answers 200 with this many bytes of valid but useless JSON.
func Oversize(bytes int) Fault {
	return Fault{name: "oversize", end: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 64<<10))
		for written := 0; written < bytes; written += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`[]`))
	}}
}

// Redirect redirects the caller to the same address with 307. A client that follows it sends a
// second POST.
func Redirect() Fault {
	return Fault{name: "redirect", end: func(_ *Server, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
	}}
}

// Answer answers every request with this status and body.
func Answer(status int, body any) Fault {
	return Fault{name: "answer", reply: &reply{status: status, body: body}}
}

// ServerError answers with a 500 in the format that civogo parses.
func ServerError() Fault {
	return Answer(http.StatusInternalServerError, map[string]any{"status": 500, "error": "Internal Server Error"}).named("server error")
}

// Unauthorized answers that the API key is not valid.
func Unauthorized() Fault {
	refusal := unauthorized()
	return Fault{name: "unauthorized", reply: &refusal}
}

// Quota answers that the account's quota is reached.
func Quota() Fault {
	refusal := failure(http.StatusForbidden, "quota_limit_reached", "Quota limit reached")
	return Fault{name: "quota", reply: &refusal}
}

// Failed answers 200 with a result other than success. civogo does not treat this as an error.
func Failed() Fault {
	return Answer(http.StatusOK, map[string]any{
		"result": "failed", "code": "openstack_instance_reboot", "reason": "Failed to reboot the instance", "details": "no host",
	}).named("failed")
}

// PanicReason answers with an error whose reason is not a string. civogo panics on that.
func PanicReason(status int) Fault {
	return Answer(status, map[string]any{"code": "openstack_instance_reboot", "reason": 42}).named("panic reason")
}

// Missing removes a hostname from the list of instances.
func Missing(hostname string) Fault {
	return Fault{name: "missing " + hostname, list: func(all []Instance) []Instance {
		return slices.DeleteFunc(all, func(in Instance) bool { return in.Hostname == hostname })
	}}
}

// Twice adds a second instance with the same hostname and another ID to the list.
func Twice(hostname string) Fault {
	return Fault{name: "twice " + hostname, list: func(all []Instance) []Instance {
		return append(all, Instance{ID: randomID(), Hostname: hostname, Pool: "pool-1", Status: "ACTIVE"})
	}}
}

// Pools changes the list of pools. change gets a pool's real state and returns the one to report.
func Pools(name string, change func(Pool) Pool) Fault {
	return Fault{name: name, pools: func(all []poolJSON) []poolJSON {
		for i, p := range all {
			changed := change(Pool{ID: p.ID, Count: p.Count, Instances: len(p.Instances)})
			all[i].ID, all[i].Count, all[i].Instances = changed.ID, changed.Count, p.Instances[:changed.Instances]
		}
		return all
	}}
}

// Pool is the part of a pool that Pools can change.
type Pool struct {
	ID               string
	Count, Instances int
}

func (f Fault) named(name string) Fault {
	f.name = name
	return f
}

type injected struct {
	fault Fault
	left  int // the number of calls that the fault still affects; negative means all
}

// Inject gives the fault to every call of the operation until Heal.
func (s *Server) Inject(op Op, f Fault) { s.InjectNext(op, -1, f) }

// InjectNext gives the fault to the next n calls of the operation. Faults are queued, and come
// before faults of Any.
func (s *Server) InjectNext(op Op, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[op] = append(s.faults[op], injected{f, n})
}

// Heal ends the faults of these operations, or all faults. Calls that already hang continue to
// hang.
func (s *Server) Heal(ops ...Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(ops) == 0 {
		clear(s.faults)
	}
	for _, op := range ops {
		delete(s.faults, op)
	}
}

func (s *Server) takeFault(op Op) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []Op{op, Any} {
		for queue := s.faults[key]; len(queue) > 0; queue = s.faults[key] {
			if queue[0].left == 0 {
				s.faults[key] = queue[1:]
				continue
			}
			if queue[0].left > 0 {
				queue[0].left--
			}
			return queue[0].fault
		}
	}
	return Fault{}
}
