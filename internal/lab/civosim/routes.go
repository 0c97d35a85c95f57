package civosim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

const maxBody = 1 << 20

type requestBody struct {
	Region   string `json:"region"`
	Hostname string `json:"hostname"`
	Count    *int   `json:"count"`
}

// The caller holds mu.
type handler func(r *http.Request, body requestBody, f Fault) reply

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	add := func(pattern string, op Op, h handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, op, h) })
	}
	const cluster = "/v2/kubernetes/clusters/{cluster}"
	add("GET "+cluster+"/instances", ListInstances, s.listInstances)
	add("GET "+cluster+"/pools", ListPools, s.listPools)
	add("GET "+cluster+"/pools/{pool}", GetPool, s.getPool)
	add("PUT "+cluster+"/pools/{pool}", UpdatePool, s.updatePool)
	add("DELETE "+cluster+"/pools/{pool}/instances/{instance}", DeletePoolNode, s.deletePoolInstance)
	add("POST "+cluster+"/recycle", Recycle, s.recycle)
	add("GET /v2/instances/{instance}", GetInstance, s.getInstance)
	add("POST /v2/instances/{instance}/hard_reboots", HardReboots, s.rebootInstance(HardReboots, "hard reboot"))
	add("POST /v2/instances/{instance}/soft_reboots", SoftReboots, s.rebootInstance(SoftReboots, "soft reboot"))
	add("/", UnknownOp, func(*http.Request, requestBody, Fault) reply {
		return failure(http.StatusNotFound, "not_found", "The simulator does not serve this path")
	})
	return mux
}

// Each step is recorded before the caller can notice it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, op Op, h handler) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.work.Done()
	raw, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	fault := s.takeFault(op)
	number := s.record(Call{
		At: s.o.Now(), Op: op, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
		Body: string(raw), UserAgent: r.UserAgent(), Fault: fault.name,
	})
	defer s.amend(number, func(c *Call) {
		if c.Status == 0 {
			c.Status = NoAnswer
		}
	})

	var answer reply
	if fault.name == "" || fault.after || fault.list != nil || fault.pools != nil {
		answer = s.perform(r, raw, h, fault)
		s.amend(number, func(c *Call) { c.Done = answer.done })
		if hook := s.hook(op); hook != nil && answer.done != "" {
			hook()
		}
	}
	switch {
	case fault.end != nil:
		recorder := &recordingWriter{ResponseWriter: w, server: s, call: number}
		fault.end(s, recorder, r)
		return
	case fault.reply != nil:
		answer = *fault.reply
	case fault.delay > 0 && !s.pause(r, fault.delay):
		panic(http.ErrAbortHandler)
	}
	text, _ := json.Marshal(answer.body)
	s.amend(number, func(c *Call) { c.Status, c.Answer = answer.status, string(text) })
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	_, _ = w.Write(text)
}

// Close waits for a call that has entered. enter returns false if the simulator is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
	}
	return !s.closed
}

func (s *Server) perform(r *http.Request, raw []byte, h handler, fault Fault) reply {
	var body requestBody
	// civogo sends plain bodies with a header that says gzip. Civo ignores that header, and so does
	// the simulator.
	if len(bytes.TrimSpace(raw)) > 0 && json.Unmarshal(raw, &body) != nil {
		return failure(http.StatusBadRequest, "bad_request", "The body is not a JSON object")
	}
	if refusal, ok := s.authorize(r, body); !ok {
		return refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return h(r, body, fault)
}

func (s *Server) hook(op Op) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks[op]
}

// pause returns false if the caller has disconnected or the simulator has been closed in the
// meantime.
func (s *Server) pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	case <-s.stopping.Done():
		return false
	}
}

type recordingWriter struct {
	http.ResponseWriter
	server *Server
	call   int
	noted  bool
}

func (w *recordingWriter) WriteHeader(status int) {
	w.noted = true
	w.server.amend(w.call, func(c *Call) { c.Status = status })
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordingWriter) Write(p []byte) (int, error) {
	if !w.noted {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}
