package sidecarsim

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

const maxBody = 1 << 20

type reply struct {
	status int
	body   any
}

type text string

// The caller holds mu.
type handler func(c *sidecar, r *http.Request, call *Call, f Fault) reply

func (s *Server) routes(c *sidecar) http.Handler {
	mux := http.NewServeMux()
	add := func(pattern string, op Op, h handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(c, w, r, op, h) })
	}
	add("GET /v0/healthz", Health, health)
	add("GET /v0/startupz", Health, health)
	add("GET /v0/livez", Livez, func(*sidecar, *http.Request, *Call, Fault) reply {
		return reply{http.StatusOK, map[string]string{"status": "ok"}}
	})
	add("GET /v0/status", Status, status)
	add("GET /v0/metrics", Metrics, metrics)
	add("POST /v0/tasks", Submit, s.submit)
	add("GET /v0/tasks", ListTasks, s.listTasks)
	add("GET /v0/tasks/{id}", GetTask, s.getTask)
	add("/", UnknownOp, func(*sidecar, *http.Request, *Call, Fault) reply {
		return reply{http.StatusNotFound, map[string]string{"error": "not found"}}
	})
	return mux
}

// Each step is recorded before the caller can notice it.
func (s *Server) serve(c *sidecar, w http.ResponseWriter, r *http.Request, op Op, h handler) {
	process, ok := s.enter(c)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	defer s.work.Done()
	raw, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	fault, healed := s.takeFault(c.pod.Key(), op)
	_, sent := bearer(r)
	number := s.record(Call{
		At: s.o.Now(), Op: op, Method: r.Method, Path: r.URL.Path, Body: string(raw), Pod: c.pod, Remote: r.RemoteAddr,
		Token: sent, RemoteUser: r.Header.Get("X-Remote-User"), Fault: fault.name,
	})
	defer s.amend(number, func(c *Call) {
		if c.Status == 0 {
			c.Status = NoAnswer
		}
	})
	if fault.hang {
		select {
		case <-healed:
		case <-c.gone.Done():
			panic(http.ErrAbortHandler)
		}
	}

	var answer reply
	if fault.after || fault.end == nil && fault.reply == nil {
		answer, ok = s.perform(c, process, r, op, number, h, fault)
		if !ok {
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case fault.end != nil:
		fault.end(&recordingWriter{ResponseWriter: w, server: s, call: number}, r)
		return
	case fault.reply != nil:
		answer = *fault.reply
	case fault.delay > 0 && !pause(c, r, fault.delay):
		panic(http.ErrAbortHandler)
	}
	body, kind := []byte(nil), "application/json"
	if t, ok := answer.body.(text); ok {
		body, kind = []byte(t), "text/plain"
	} else {
		body, _ = json.Marshal(answer.body)
	}
	s.amend(number, func(c *Call) { c.Status, c.Answer = answer.status, string(body) })
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(answer.status)
	_, _ = w.Write(body)
}

// Close waits for a call that has entered. enter returns false if the simulator is closing. process
// identifies the sidecar's process that received the call.
func (s *Server) enter(c *sidecar) (process int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || c.gone.Err() != nil {
		return 0, false
	}
	s.work.Add(1)
	return c.process, true
}

func (s *Server) perform(c *sidecar, process int, r *http.Request, op Op, number int, h handler, f Fault) (reply, bool) {
	if refusal, ok := s.authorize(r, c.pod, op, number); !ok {
		return refusal, true
	}
	s.mu.Lock()
	if c.gone.Err() != nil || c.process != process {
		s.mu.Unlock()
		return reply{}, false
	}
	call := &s.calls[number]
	answer := h(c, r, call, f)
	s.announce()
	done, hook := *call, s.hooks[op]
	s.mu.Unlock()
	if hook != nil && done.Done != "" {
		hook(done)
	}
	return answer, true
}

// pause returns false if the caller has disconnected or the sidecar has ended in the meantime.
func pause(c *sidecar, r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	case <-c.gone.Done():
		return false
	}
}

type recordingWriter struct {
	http.ResponseWriter
	server *Server
	call   int
}

func (w *recordingWriter) WriteHeader(status int) {
	w.server.amend(w.call, func(c *Call) { c.Status = status })
	w.ResponseWriter.WriteHeader(status)
}

// Flush passes the flush on to the wrapped writer.
func (w *recordingWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
