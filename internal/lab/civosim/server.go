// Package civosim simulates the part of Civo's HTTP API that civogo v0.6.5
// uses for the machines of one Kubernetes cluster: the same paths, region and
// bearer checks, bodies and error codes, over plain HTTP on the loopback
// interface. What happens to a machine is handed to a Machines, so that a lab
// can wire it to the Nodes of a real API server.
//
// Three error bodies are what users of the real API have published: a refused
// key ({"result":"requires_authentication","status":401}), a region that Civo
// does not know, or does not reach just now (code database_region_not_found),
// and a cluster that is not in the region asked for, which is told like one that
// is nowhere (code database_kubernetes_cluster_not_found). The codes of the
// others come from civogo's table; their HTTP statuses and their wording are
// assumptions. So is how a recycle looks from outside: Civo's documentation says
// that it deletes the node, then builds another to match it, without a drain.
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
	// ClusterID, Region and APIKey are what callers must present. All are required.
	ClusterID, Region, APIKey string
	// OtherRegions are regions that exist, and in which this cluster is not.
	OtherRegions []string
	// Instances are the machines at the start. An empty ID is filled in, an
	// empty Pool is "pool-1", an empty Status is ACTIVE.
	Instances []Instance
	// Elsewhere are the account's instances in the region that are not the
	// cluster's: no list here has them, but a call that names one by its ID
	// reaches it.
	Elsewhere []Instance
	// Machines hears what happens to the machines. Nil: nobody does.
	Machines Machines
	// RebootTime is how long a machine is away when it is rebooted, DeleteTime
	// how long a recycled one is DELETING, BuildTime how long a new one takes
	// to join from then on. Zero: no time at all.
	RebootTime, DeleteTime, BuildTime time.Duration
	// Cures says whether a reboot (HardReboots or SoftReboots) helps the
	// machine; one that it does not help comes back with the same fault.
	// Nil: it always does.
	Cures func(in Instance, op Op) bool
	// Rename gives the hostname of the machine that a recycle builds in place
	// of old. Nil: the pool's name and a random end. Return old.Hostname for a
	// provider that keeps it.
	Rename func(old Instance) string
	// Now gives the times in the record, and of the machines' creation. Nil: time.Now.
	Now func() time.Time
	// After is the clock by which machines go and come: it gets the times above,
	// and a test that answers in its own time sees every stage. Nil: a real one.
	After func(time.Duration) <-chan time.Time
	// Logf hears of Machines' errors, which no caller of the API could be told.
	// Nil: they are dropped.
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
	closed    bool // from here on nothing may join work
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

// URL is what civogo takes as the API's URL.
func (s *Server) URL() string { return s.url }

// Close ends hanging calls, stops reboots and rebuilds that are under way, and
// returns when nothing of the simulator runs any more.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	_ = s.http.Close()
	s.work.Wait()
}

// On sets what runs in every call to the operation that did something, after
// the work is done and before it is answered: where a test kills the caller.
// Nil: nothing.
func (s *Server) On(op Op, hook func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[op] = hook
}

// OnReboot is On for both kinds of reboot.
func (s *Server) OnReboot(hook func()) {
	s.On(HardReboots, hook)
	s.On(SoftReboots, hook)
}

// reply is what a handler wants to be answered, and what it did to get there.
type reply struct {
	status int
	body   any
	done   string
}

// authorize returns the error that Civo gives a request before it looks at
// what is asked for.
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
