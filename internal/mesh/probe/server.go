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
	// Listen is ADDRESS:PORT, for TCP and UDP. Without an address it means all IPv4 and IPv6
	// addresses.
	Listen string
	Node   string
	// Keys returns the valid keys.
	Keys func() []Key
	Now  func() time.Time
	// Limits is how many questions are answered. A zero field means its default.
	Limits Limits
	// Registerer may be nil.
	Registerer prometheus.Registerer
	Log        logr.Logger

	connectionTime time.Duration // how long a connection may last; if it is zero, the default
}

// Server answers the probes of other agents. Start runs it once.
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

// NewServer returns a Server that does not listen yet.
func NewServer(o ServerOptions) (*Server, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the probe port %q is invalid; write an address and a port, for example :9099", o.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, fmt.Errorf("the probe port %q is invalid: %q is not a port; write one, for example :9099", o.Listen, port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" {
		return nil, fmt.Errorf("the probe port %q is invalid: %q is not an address; write one, for example 10.0.0.1, or none", o.Listen, host)
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

// Listening returns a channel that is closed when the server accepts questions.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Port returns the port in use, which is known when Listening is closed.
func (s *Server) Port() uint16 { return s.port }

// Start answers questions until ctx ends. It returns an error if the port cannot be opened or is
// lost.
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

// All sockets of the server must be able to use the same random port, if the configured port is 0.
const portTries = 20

// listen skips an address family that the machine does not have, unless the configured address is
// of that family.
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
		config.SetMultipathTCP(false) // a probe uses a normal TCP flow
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

func absent(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EPROTONOSUPPORT)
}

// answer returns nil if q gets no answer. q arrived whole and was signed with the key k.
func (s *Server) answer(q message, k Key, from netip.Addr) []byte {
	now := s.options.Now()
	verdict := malformed
	if q.kind == question {
		verdict = s.gate.admit(q, from, now)
	}
	s.count(q.proto, verdict)
	if verdict == stale && s.clocks.due(now) {
		s.options.Log.Info("the clocks of a peer and of this node differ by more than a minute, so this agent does not answer the peer; check both clocks", "peer", from, "difference", now.Sub(q.at).Truncate(time.Second))
	}
	if verdict != answered {
		return nil
	}
	q.kind, q.node = answer, s.node
	return q.seal(k)
}

func (s *Server) count(p Proto, r result) { s.questions.WithLabelValues(string(p), string(r)).Inc() }

func refusal(err error) result {
	if errors.Is(err, errUnauthenticated) {
		return unauthenticated
	}
	return malformed
}

// complaint is logged once in five minutes, because its cause may occur a thousand times a second.
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
