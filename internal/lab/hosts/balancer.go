package hosts

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The load balancer in front of the API servers sends each connection to a ready one. It ends the
// connections to an API server that is no longer ready.
type balancer struct {
	listener net.Listener
	end      context.CancelFunc

	mu    sync.Mutex
	ready []*Host
	turn  int
	open  map[*Host]map[net.Conn]struct{}
}

const looks = 500 * time.Millisecond

func newBalancer(hosts []*Host) (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not block
	if err != nil {
		return nil, fmt.Errorf("starting the balancer of the API servers: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	b := &balancer{listener: listener, end: end, ready: slices.Clone(hosts), open: map[*Host]map[net.Conn]struct{}{}}
	for _, host := range hosts {
		go b.watch(ctx, host)
	}
	go b.accept(ctx)
	return b, nil
}

func (b *balancer) url() string { return "https://" + b.listener.Addr().String() }

func (b *balancer) close() {
	b.end()
	_ = b.listener.Close() // open connections end with their hosts
}

func (b *balancer) watch(ctx context.Context, host *Host) {
	tick := time.NewTicker(looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.say(host, host.Ready(ctx) == nil || again(ctx, host))
		}
	}
}

// On a busy machine one answer may be late, and a failed check ends all connections to the host.
func again(ctx context.Context, host *Host) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return host.Ready(ctx) == nil
}

func (b *balancer) say(host *Host, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch was := slices.Contains(b.ready, host); {
	case ready && !was:
		b.ready = append(b.ready, host)
	case !ready && was:
		b.ready = slices.DeleteFunc(b.ready, func(h *Host) bool { return h == host })
		for c := range b.open[host] {
			_ = c.Close() // the host does not answer: the client connects again
		}
	}
}

func (b *balancer) accept(ctx context.Context) {
	for {
		c, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.serve(ctx, c)
	}
}

// next takes the hosts in turn. It returns nil if no host is ready.
func (b *balancer) next() *Host {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nil
	}
	b.turn++
	return b.ready[b.turn%len(b.ready)]
}

func (b *balancer) serve(ctx context.Context, in net.Conn) {
	defer in.Close()
	host := b.next()
	if host == nil {
		return
	}
	dialer := net.Dialer{Timeout: time.Second}
	out, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host.Address(), strconv.Itoa(APIServerPort)))
	if err != nil {
		return
	}
	defer out.Close()
	b.keep(host, in, true)
	defer b.keep(host, in, false)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // the end of one direction ends both
			done <- struct{}{}
		}()
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (b *balancer) keep(host *Host, c net.Conn, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !open {
		delete(b.open[host], c)
		return
	}
	if b.open[host] == nil {
		b.open[host] = map[net.Conn]struct{}{}
	}
	b.open[host][c] = struct{}{}
}
