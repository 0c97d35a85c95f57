package providertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// HTTPOptions describe the backend of a provider that speaks HTTP.
type HTTPOptions struct {
	// Handler is the backend without faults.
	Handler http.Handler
	// Whether a request asks for a change of a machine.
	Changes func(*http.Request) bool
	// An error as the API would format it. An empty contentType means JSON.
	Error func(status int, text string) (contentType, body string)
	// If it is nil, the listener speaks plain HTTP.
	TLS *tls.Config
}

// HTTP is a Wire for a provider that speaks HTTP.
type HTTP struct {
	o      HTTPOptions
	server *http.Server
	listen net.Listener
	thief  net.Listener
	closed context.Context
	end    context.CancelFunc
	// Each ends the reservation of a listener's port.
	release [2]func()

	strays, connects atomic.Int64
	overread         atomic.Bool

	mu       sync.Mutex
	arrived  int
	requests []Request // the requests whose work is done
	armed    []armed
	busy     int
	changed  chan struct{}
}

type armed struct {
	from, to int // request numbers; to is exclusive, and a negative to means no end
	fault    Fault
}

func (a armed) hits(n int) bool { return n >= a.from && (a.to < 0 || n < a.to) }

// NewHTTP returns an HTTP that listens on the loopback interface until it is closed.
func NewHTTP(t testing.TB, o HTTPOptions) *HTTP {
	t.Helper()
	h := &HTTP{o: o, changed: make(chan struct{})}
	h.closed, h.end = context.WithCancel(context.Background())
	h.thief, h.release[0] = listen(t)
	h.listen, h.release[1] = listen(t)
	go h.rob()
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	h.server = &http.Server{Handler: h, Protocols: http1, ErrorLog: quiet()}
	var serve net.Listener = counting{h.listen, &h.connects}
	if o.TLS != nil {
		serve = tls.NewListener(serve, o.TLS)
	}
	go func() { _ = h.server.Serve(serve) }()
	return h
}

// URL returns the address of the listener.
func (h *HTTP) URL() string {
	if h.o.TLS != nil {
		return "https://" + h.listen.Addr().String()
	}
	return "http://" + h.listen.Addr().String()
}

// Close ends the listener and all requests that are under way.
func (h *HTTP) Close() {
	h.end()
	_ = h.thief.Close()
	_ = h.listen.Close()
	_ = h.server.Close()
	for _, release := range h.release {
		release()
	}
}

// rob counts the connections to the address that the fault Redirect names.
func (h *HTTP) rob() {
	for {
		c, err := h.thief.Accept()
		if err != nil {
			return
		}
		h.strays.Add(1)
		_ = c.Close()
	}
}

// Strays implements Wire.
func (h *HTTP) Strays() int { return int(h.strays.Load()) }

// Overread implements Wire.
func (h *HTTP) Overread() bool { return h.overread.Load() }

// Connects implements Wire.
func (h *HTTP) Connects() (int, bool) { return int(h.connects.Load()), h.o.TLS != nil }

// Misbehave implements Wire.
func (h *HTTP) Misbehave(first, count int, f Fault) {
	h.mu.Lock()
	a := armed{from: h.arrived + first, to: -1, fault: f}
	if count >= 0 {
		a.to = a.from + count
	}
	h.armed = append(h.armed, a)
	h.mu.Unlock()
	if f.Kind == Gone && first == 0 {
		_ = h.listen.Close()
	}
}

// Requests implements Wire.
func (h *HTTP) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(slices.Values(h.requests), func(a, b Request) int { return a.Number - b.Number })
}

// Busy implements Wire.
func (h *HTTP) Busy() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy
}

// Await implements Wire.
func (h *HTTP) Await(ctx context.Context, match func(Request) bool) bool {
	for {
		h.mu.Lock()
		there, changed := slices.ContainsFunc(h.requests, match), h.changed
		h.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-h.closed.Done():
			return false
		}
	}
}

// ServeHTTP passes a request to the backend, or answers it with a fault.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	again := func() *http.Request {
		out := r.Clone(r.Context())
		out.Body = io.NopCloser(bytes.NewReader(sent))
		return out
	}
	h.mu.Lock()
	n := h.arrived
	h.arrived++
	fault, faulty := h.faultOf(n)
	next, _ := h.faultOf(n + 1)
	h.busy++
	h.mu.Unlock()
	var done *recorded
	if !faulty || fault.Done {
		done = record(h.o.Handler, again())
	}
	h.mu.Lock()
	h.requests = append(h.requests, Request{Number: n, Changes: h.o.Changes(again()), What: r.Method + " " + r.URL.Path})
	close(h.changed)
	h.changed = make(chan struct{})
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.busy--
		h.mu.Unlock()
	}()
	if next.Kind == Gone {
		_ = h.listen.Close()
		w.Header().Set("Connection", "close")
	}
	if !faulty {
		done.send(w)
		return
	}
	h.misanswer(w, r, string(sent), fault, done)
}

// The caller holds mu.
func (h *HTTP) faultOf(n int) (Fault, bool) {
	for _, a := range h.armed {
		if a.hits(n) {
			return a.fault, true
		}
	}
	return Fault{}, false
}

type counting struct {
	net.Listener
	many *atomic.Int64
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.many.Add(1)
	}
	return conn, err
}
