package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// ServerOptions configure a Server.
type ServerOptions struct {
	// Listen is the address and the port, used for TCP and UDP. Without an address: all addresses,
	// of IPv4 and IPv6.
	Listen string
	// Node is the name of the answering node.
	Node string
	// Keys returns the valid keys.
	Keys func() []Key
	Now  func() time.Time
	// Limits; zero: the defaults.
	Limits Limits
	// Registerer registers the metrics. Nil: they are not registered.
	Registerer prometheus.Registerer
	Log        logr.Logger

	connectionTime time.Duration // what a connection may last; zero: the default
}

// Server answers probes. NewServer makes it, and Start runs it once.
type Server struct {
	options     ServerOptions
	node        [8]byte
	gate        *gate
	questions   *prometheus.CounterVec
	connections *connections
	clocks      complaint

	port      uint16
	listening chan struct{}
}

// NewServer makes a Server. It does not listen yet.
func NewServer(o ServerOptions) (*Server, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the probe port %q: write an address and a port, for example :9099", o.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, fmt.Errorf("the probe port %q: %q is not a port; write one, for example :9099", o.Listen, port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" {
		return nil, fmt.Errorf("the probe port %q: %q is not an address; write one, for example 10.0.0.1, or none", o.Listen, host)
	}
	if o.connectionTime == 0 {
		o.connectionTime = connectionTime
	}
	questions, err := newQuestions(o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Server{
		options: o, node: fingerprint(o.Node), gate: newGate(o.Limits), questions: questions,
		connections: newConnections(), listening: make(chan struct{}),
	}, nil
}

// Listening is closed once the server accepts questions.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Port is the port in use, once Listening is closed.
func (s *Server) Port() uint16 { return s.port }

// Start answers until ctx ends. An error means that the port could not be opened, or was lost.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams, packets, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("opening the probe port: %w", err)
	}
	closeAll := func() {
		for _, l := range streams {
			_ = l.Close()
		}
		for _, p := range packets {
			_ = p.Close()
		}
		s.connections.closeAll()
	}
	defer context.AfterFunc(ctx, closeAll)()
	close(s.listening)
	s.options.Log.Info("answering probes", "port", s.port, "sockets", len(streams)+len(packets))

	var running sync.WaitGroup
	failures := make(chan error, len(streams)+len(packets))
	run := func(serve func() error) {
		running.Go(func() {
			if err := serve(); ctx.Err() == nil {
				failures <- err
				cancel()
			}
		})
	}
	for _, l := range streams {
		run(func() error { return s.serveStreams(ctx, l) })
	}
	for _, p := range packets {
		run(func() error { return s.servePackets(p) })
	}
	<-ctx.Done()
	closeAll()
	running.Wait()
	s.connections.wait()
	select {
	case err := <-failures:
		return fmt.Errorf("serving the probe port: %w", err)
	default:
		return nil
	}
}

// portTries is how often to search for a port that is free for all sockets.
const portTries = 20

// listen opens a socket for each protocol and family. It skips a family that the machine lacks,
// unless the address names it.
func (s *Server) listen(ctx context.Context) (streams []net.Listener, packets []net.PacketConn, err error) {
	host, port, _ := net.SplitHostPort(s.options.Listen)
	for range portTries {
		streams, packets, err = s.listenOn(ctx, host, port)
		if port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return streams, packets, err
}

func (s *Server) listenOn(ctx context.Context, host, port string) (streams []net.Listener, packets []net.PacketConn, err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, l := range streams {
			_ = l.Close()
		}
		for _, p := range packets {
			_ = p.Close()
		}
		streams, packets = nil, nil
	}()
	var missing error
	for _, family := range families(host) {
		config := net.ListenConfig{KeepAlive: -1}
		config.SetMultipathTCP(false) // a probe uses the simplest flow
		l, err := config.Listen(ctx, "tcp"+family, net.JoinHostPort(host, port))
		if absent(err) && host == "" {
			missing = err
			continue
		}
		if err != nil {
			return streams, packets, err
		}
		streams = append(streams, l)
		s.port = netip.MustParseAddrPort(l.Addr().String()).Port()
		port = strconv.Itoa(int(s.port))
		p, err := (&net.ListenConfig{Control: dontFragment}).ListenPacket(ctx, "udp"+family, net.JoinHostPort(host, port))
		if err != nil {
			return streams, packets, err
		}
		packets = append(packets, p)
	}
	if len(streams) == 0 {
		return nil, nil, missing
	}
	return streams, packets, nil
}

func families(host string) []string {
	switch ip, err := netip.ParseAddr(host); {
	case err != nil:
		return []string{"4", "6"}
	case ip.Unmap().Is4():
		return []string{"4"}
	}
	return []string{"6"}
}

// absent reports whether the machine lacks the address family.
func absent(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EPROTONOSUPPORT)
}

// answer returns what to send back. Nil: nothing. q arrived whole and was signed with the key k.
func (s *Server) answer(q message, k Key, from netip.Addr) []byte {
	now := s.options.Now()
	verdict := malformed
	if q.kind == question {
		verdict = s.gate.admit(q, from, now)
	}
	s.count(q.proto, verdict)
	if verdict == stale && s.clocks.due(now) {
		s.options.Log.Info("a peer's clock and this node's differ; its questions get no answer", "peer", from, "difference", now.Sub(q.at).Truncate(time.Second))
	}
	if verdict != answered {
		return nil
	}
	q.kind, q.node = answer, s.node
	return q.seal(k)
}

func (s *Server) count(p Proto, r result) { s.questions.WithLabelValues(string(p), string(r)).Inc() }

// refusal returns the result that counts open's error.
func refusal(err error) result {
	if errors.Is(err, errUnauthenticated) {
		return unauthenticated
	}
	return malformed
}

// complaint limits log lines for errors that may occur a thousand times a second.
type complaint struct {
	mu   sync.Mutex
	last time.Time
}

func (c *complaint) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) < 5*time.Minute {
		return false
	}
	c.last = now
	return true
}
