package probe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// A leader has 300 connections if 10,000 agents probe it every 10 s and each probe takes 300
	// ms.
	maxConnections = 1024
	// All agents of a location may share one address.
	maxConnectionsOfOne = 128
	// connectionTime and maxQuestions limit one connection. A probe has two questions.
	connectionTime = 3 * time.Second
	maxQuestions   = 4
	// acceptPause is the wait after a temporary error of Accept, for example too many open files.
	acceptPause = 50 * time.Millisecond
)

func (s *Server) serveStreams(ctx context.Context, l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) ||
			errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ECONNABORTED) {
			pause := time.NewTimer(acceptPause)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
			continue
		}
		if err != nil {
			return err
		}
		from := netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().Unmap().WithZone("")
		if !s.connections.serve(c, from, s.serveConnection) {
			s.count(TCP, limited)
			_ = c.Close()
		}
	}
}

// serveConnection closes the connection after the first message without a valid key.
func (s *Server) serveConnection(c net.Conn, from netip.Addr) {
	if err := c.SetDeadline(time.Now().Add(s.options.connectionTime)); err != nil {
		return
	}
	header := make([]byte, headerSize)
	for range maxQuestions {
		if n, err := io.ReadFull(c, header); err != nil {
			if n > 0 {
				s.count(TCP, malformed)
			}
			return
		}
		q, k, err := open(header, s.options.Keys())
		if err == nil && q.proto != TCP {
			err = errMalformed
		}
		if err != nil {
			s.count(TCP, refusal(err))
			return
		}
		rest := make([]byte, q.length-headerSize)
		if _, err := io.ReadFull(c, rest); err != nil || !zeros(rest) {
			s.count(TCP, malformed)
			return
		}
		a := s.answer(q, k, from)
		if a == nil {
			return
		}
		if _, err := c.Write(a); err != nil {
			return
		}
	}
}

type connections struct {
	mu      sync.Mutex
	open    map[net.Conn]struct{}
	sources map[netip.Addr]int
	closed  bool
	running sync.WaitGroup
}

func newConnections() *connections {
	return &connections{open: map[net.Conn]struct{}{}, sources: map[netip.Addr]int{}}
}

// serve returns false if there are too many connections.
func (s *connections) serve(c net.Conn, from netip.Addr, handle func(net.Conn, netip.Addr)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= maxConnections || s.sources[from] >= maxConnectionsOfOne {
		return false
	}
	s.open[c] = struct{}{}
	s.sources[from]++
	s.running.Go(func() {
		defer s.done(c, from)
		handle(c, from)
	})
	return true
}

func (s *connections) done(c net.Conn, from netip.Addr) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.sources[from]--; s.sources[from] == 0 {
		delete(s.sources, from)
	}
}

// closeAll also prevents new connections.
func (s *connections) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		_ = c.Close()
	}
}

func (s *connections) wait() { s.running.Wait() }
