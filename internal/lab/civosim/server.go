// Package civosim simulates the part of Civo's HTTP API that civogo v0.6.5 uses for the machines of
// one Kubernetes cluster. It has the same paths, region and bearer checks, bodies and error codes,
// over plain HTTP on the loopback interface. A Machines receives what happens to a machine, so that
// a lab can apply it to the Nodes of a real API server.
//
// Users of the real API have published three of the error bodies. The first is a rejected key
// ({"result":"requires_authentication","status":401}). The second is a region that Civo does not
// know or cannot reach now (code database_region_not_found). The third is a cluster outside the
// requested region, reported like a missing one (code database_kubernetes_cluster_not_found). The
// codes of the others come from civogo's table; their HTTP statuses and texts are assumptions. So
// is the visible course of a recycle: according to Civo's documentation it deletes the node, then
// builds a matching one, without a drain.
package civosim

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options describe one simulated cluster.
type Options struct {
	// All three are required: callers must send them.
	ClusterID, Region, APIKey string
	OtherRegions              []string
	// Instances are the machines at the start. An empty ID is generated, Pool defaults to "pool-1",
	// and Status to ACTIVE.
	Instances []Instance
	// Elsewhere are the account's instances outside the cluster. No list shows them, but a call
	// with their ID reaches them.
	Elsewhere []Instance
	// Machines may be nil.
	Machines Machines
	// RebootTime is how long a reboot takes. DeleteTime and BuildTime are how long a recycle
	// deletes the old machine and builds the new one. The default is zero.
	RebootTime, DeleteTime, BuildTime time.Duration
	// Cures reports whether a reboot repairs the machine. Nil means always.
	Cures func(in Instance, op Op) bool
	// Rename returns the hostname of the machine that a recycle builds in place of old. Nil means
	// the pool's name and a random suffix.
	Rename func(old Instance) string
	// Now is the clock for recorded calls and creation times. Nil means time.Now.
	Now func() time.Time
	// After is the clock for changes of the machines, called with the durations above. With a clock
	// of its own, a test can observe every stage. Nil means time.After.
	After func(time.Duration) <-chan time.Time
	// Logf receives errors of Machines, because no caller of the API sees them. Nil drops them.
	Logf func(format string, args ...any)
}

// Server is a running simulator. Its methods may be called at any time.
type Server struct {
	o        Options
	url      string
	http     *http.Server
	stop     context.CancelFunc
	stopping context.Context
	work     sync.WaitGroup

	mu        sync.Mutex
	closed    bool // if true, no new work may start
	instances []Instance
	created   map[string]time.Time // by instance ID
	pools     []*pool              // in order of appearance; a pool outlives its last instance
	faults    map[Op][]injected
	hooks     map[Op]func()
	calls     []Call
	changed   chan struct{} // closed and replaced whenever calls changes
}

// New starts a simulator on a free port of 127.0.0.1. The caller closes it.
func New(o Options) (*Server, error) {
	if o.ClusterID == "" || o.Region == "" || o.APIKey == "" {
		return nil, errors.New("civosim needs a cluster ID, a region and an API key")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.Rename == nil {
		o.Rename = func(old Instance) string { return old.Pool + "-" + randomID()[:8] }
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for civosim: %w", err)
	}
	s := &Server{
		o:       o,
		url:     "http://" + listener.Addr().String(),
		created: map[string]time.Time{},
		faults:  map[Op][]injected{},
		hooks:   map[Op]func(){},
		changed: make(chan struct{}),
	}
	for _, in := range o.Instances {
		s.pool(s.admit(in).Pool).count++
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	s.work.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL is the API's URL for civogo.
func (s *Server) URL() string { return s.url }

// Close ends hanging calls, reboots and rebuilds, and returns when no goroutine of the simulator
// runs any more.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	_ = s.http.Close()
	s.work.Wait()
}

// On sets a hook for every call to the operation that did something. It runs before the answer, so
// a test can kill the caller there. Nil removes it.
func (s *Server) On(op Op, hook func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[op] = hook
}

// OnReboot sets the hook for both kinds of reboot.
func (s *Server) OnReboot(hook func()) {
	s.On(HardReboots, hook)
	s.On(SoftReboots, hook)
}

type reply struct {
	status int
	body   any
	done   string
}

// Civo checks the caller before it reads what is requested. authorize returns false, with the
// error, if the caller is refused.
func (s *Server) authorize(r *http.Request, body requestBody) (reply, bool) {
	want := "bearer " + s.o.APIKey
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1 {
		return unauthorized(), false
	}
	region := r.URL.Query().Get("region")
	elsewhere := slices.Contains(s.o.OtherRegions, region)
	if (region != s.o.Region && !elsewhere) || (body.Region != "" && body.Region != region) {
		return failure(http.StatusNotFound, "database_region_not_found", "Failed to find the region within the internal database"), false
	}
	if id := r.PathValue("cluster"); id != "" && (id != s.o.ClusterID || elsewhere) {
		return failure(http.StatusNotFound, "database_kubernetes_cluster_not_found", "Failed to find the Kubernetes cluster within the internal database"), false
	}
	if elsewhere && r.PathValue("instance") != "" {
		return noInstance(), false
	}
	return reply{}, true
}

func failure(status int, code, reason string) reply {
	return reply{status: status, body: map[string]any{"result": "failed", "code": code, "reason": reason}}
}

func unauthorized() reply {
	return reply{
		status: http.StatusUnauthorized,
		body:   map[string]any{"result": "requires_authentication", "status": http.StatusUnauthorized},
	}
}

func success(done string) reply {
	return reply{status: http.StatusOK, body: map[string]any{"result": "success"}, done: done}
}
