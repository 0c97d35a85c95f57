// Package sidecarsim simulates Sei's sidecars over plain HTTP: one server for
// each pod, on the pod's own address, with kube-rbac-proxy in front. What
// matters of them is what they remember. The gate is in process memory: a new
// pod's is closed, and so is that of a container that was restarted. The ids of
// tasks are on the volume: they outlive the pod, and a task whose id is known is
// accepted and not run.
//
// The paths, bodies and statuses are those of the sidecar's published OpenAPI
// file. That a task is completed as soon as it is accepted, and the wording of
// errors, are assumptions. So is that the proxy hides X-Remote-User of a caller;
// here it is on the record, so that a test sees a caller that sends it.
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
	// Port is where every sidecar listens, on its own pod's address. Required.
	Port int
	// Review asks the API server about a caller, as kube-rbac-proxy does. Nil:
	// whoever shows a token may do everything.
	Review Review
	// Now gives the times in the record. Nil: time.Now.
	Now func() time.Time
}

// Pod is what there is to know of a pod with a sidecar.
type Pod struct {
	Namespace, Name, UID string
	Node                 string // that it runs on
	IP                   string // that its sidecar listens on
	// SeiNode names the volume, and what the proxy asks the API server about.
	SeiNode string
	// NoProxy lets everybody in, as the sidecar alone does.
	NoProxy bool
}

// Key is how the simulator calls the pod: namespace and name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Server is a running simulator. Its methods may be called at any time.
type Server struct {
	o        Options
	stop     context.CancelFunc
	stopping context.Context
	work     sync.WaitGroup

	mu       sync.Mutex
	closed   bool                       // from here on nothing may join work
	sidecars map[string]*sidecar        // by the pod's key
	volumes  map[string]map[string]Task // by namespace and SeiNode, then by id
	faults   map[target][]*injected
	hooks    map[Op]func(Call)
	calls    []Call
	changed  chan struct{} // closed and replaced whenever anything of these changes
}

// sidecar is one process: a container that is restarted is another one.
type sidecar struct {
	pod      Pod
	http     *http.Server
	listener net.Listener

	open    bool // the gate
	process int  // counts the restarts of the container
	gone    context.Context
	end     context.CancelFunc
}

// New makes a simulator without pods. The caller closes it.
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

// Port is where the sidecars listen.
func (s *Server) Port() int { return s.o.Port }

// Run starts the sidecar of a pod, its gate closed. A pod that runs already is
// left as it is; another of the same name is ended first.
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

// End ends the sidecar of a pod that is gone, with whatever it was about to do.
// Its volume stays. A pod of that name with another UID is left alone.
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

// close frees the address at once, even where the server had not begun to serve.
func (c *sidecar) close() {
	_ = c.listener.Close()
	_ = c.http.Close()
}

// Close ends all sidecars, and returns when nothing of them runs any more.
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

// On sets what runs in every call to the operation that did something, after
// the work is done and before it is answered: where a test kills the caller.
// Nil: nothing.
func (s *Server) On(op Op, hook func(Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[op] = hook
}

func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await returns when is says so; it asks now and whenever anything changed. The
// error is the context's or says that the simulator closed.
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
