// Package sidecarsim simulates Sei's sidecars over plain HTTP: one server for each pod, on the
// pod's own address, behind a simulated kube-rbac-proxy. The simulated state is what tests need.
// The gate is in process memory, so it is closed in a new pod and after a restart of the container.
// The IDs of tasks are on the volume, so they outlive the pod. A task whose ID is already known is
// accepted but not run.
//
// The paths, bodies and statuses are those of the sidecar's published OpenAPI file. The simulator
// assumes the rest: that a task is completed as soon as it is accepted, the wording of errors, and
// that the proxy hides a caller's header X-Remote-User. The recorded calls show that header, so
// that a test notices a caller that sends it.
package sidecarsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Options describe the sidecars of one cluster.
type Options struct {
	// Port is where every sidecar listens, on its own pod's address. It is required.
	Port int
	// Review asks the API server about a caller. Nil means that every caller with a token may do
	// everything.
	Review Review
	// Now is the clock for recorded calls. Nil means time.Now.
	Now func() time.Time
}

// Pod describes a pod with a sidecar.
type Pod struct {
	Namespace, Name, UID string
	Node                 string // the pod's node
	IP                   string // the sidecar's address
	// SeiNode is the name of the volume, and of the object in the proxy's access review.
	SeiNode string
	// NoProxy means that the sidecar has no proxy and accepts every caller.
	NoProxy bool
}

// Key is the pod's key in the simulator: namespace and name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Server is a running simulator. Its methods may be called at any time.
type Server struct {
	o        Options
	stop     context.CancelFunc
	stopping context.Context
	work     sync.WaitGroup

	mu       sync.Mutex
	closed   bool                       // if true, no new work may start
	sidecars map[string]*sidecar        // by the pod's key
	volumes  map[string]map[string]Task // by namespace and SeiNode, then by id
	faults   map[target][]*injected
	hooks    map[Op]func(Call)
	calls    []Call
	changed  chan struct{} // closed and replaced at every change of these fields
}

type sidecar struct {
	pod      Pod
	http     *http.Server
	listener net.Listener

	open    bool // the gate
	process int  // the number of the process; each restart of the container increments it
	gone    context.Context
	end     context.CancelFunc
}

// New makes a simulator without pods. The caller must close it.
func New(o Options) (*Server, error) {
	if o.Port == 0 {
		return nil, errors.New("sidecarsim needs the port that sidecars listen on")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		o:        o,
		sidecars: map[string]*sidecar{},
		volumes:  map[string]map[string]Task{},
		faults:   map[target][]*injected{},
		hooks:    map[Op]func(Call){},
		changed:  make(chan struct{}),
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Port returns the port where the sidecars listen.
func (s *Server) Port() int { return s.o.Port }

// Run starts the sidecar of a pod, with its gate closed. It does nothing if the same pod already
// runs, and first ends the sidecar of another pod with the same name.
func (s *Server) Run(p Pod) error {
	s.mu.Lock()
	before := s.sidecars[p.Key()]
	s.mu.Unlock()
	if before != nil && before.pod.UID == p.UID {
		return nil
	}
	if before != nil {
		s.End(before.pod)
	}
	listener, err := new(net.ListenConfig).Listen(s.stopping, "tcp", net.JoinHostPort(p.IP, strconv.Itoa(s.o.Port)))
	if err != nil {
		return fmt.Errorf("listening for the sidecar of pod %s: %w", p.Key(), err)
	}
	c := &sidecar{pod: p, listener: listener}
	c.gone, c.end = context.WithCancel(s.stopping)
	c.http = &http.Server{Handler: s.routes(c), ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = listener.Close()
		return fmt.Errorf("starting the sidecar of pod %s: the simulator has been closed", p.Key())
	}
	s.sidecars[p.Key()] = c
	s.work.Go(func() { _ = c.http.Serve(listener) })
	s.announce()
	return nil
}

// End ends the sidecar of a deleted pod, including its pending work. The volume stays. A pod of
// that name with another UID stays, too.
func (s *Server) End(p Pod) {
	s.mu.Lock()
	c := s.sidecars[p.Key()]
	if c == nil || c.pod.UID != p.UID {
		s.mu.Unlock()
		return
	}
	delete(s.sidecars, p.Key())
	c.end()
	s.announce()
	s.mu.Unlock()
	c.close()
}

// The address is free at once, even if the server has not yet started to serve.
func (c *sidecar) close() {
	_ = c.listener.Close()
	_ = c.http.Close()
}

// Close ends all sidecars, and returns when none of their goroutines runs any more.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.sidecars
	s.sidecars = map[string]*sidecar{}
	s.mu.Unlock()
	s.stop()
	for _, c := range all {
		c.close()
	}
	s.work.Wait()
}

// On sets a hook for every call to the operation that did something. It runs before the answer, so
// a test can kill the caller there. Nil removes it.
func (s *Server) On(op Op, hook func(Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[op] = hook
}

func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await waits until is returns true. It checks at once and after every change. The error is that of
// the context, or says that the simulator was closed.
func (s *Server) Await(ctx context.Context, is func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if is() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the sidecars: %w", ctx.Err())
		case <-s.stopping.Done():
			return errors.New("waiting for the sidecars: the simulator closed")
		}
	}
}
