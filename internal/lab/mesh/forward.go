package mesh

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"sync"

	"drydock.dev/drydock/internal/lab"
)

type forward struct {
	listener net.Listener

	mu   sync.Mutex
	dial dialer // if nil, connections are closed at once
	open map[net.Conn]struct{}
}

type dialer func(context.Context) (net.Conn, error)

func (n *Network) forward(l net.Listener, dial dialer) *forward {
	f := &forward{listener: l, dial: dial, open: map[net.Conn]struct{}{}}
	ctx, cancel := context.WithCancel(context.Background())
	n.atEnd(func() {
		cancel()
		_ = l.Close()
		f.redirect(nil)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(ctx, c)
		}
	}()
	return f
}

func (f *forward) redirect(dial dialer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dial = dial
	for c := range f.open {
		_ = c.Close()
	}
}

// If the other end cannot be reached, the connection ends at once.
func (f *forward) serve(ctx context.Context, in net.Conn) {
	defer in.Close()
	f.mu.Lock()
	dial := f.dial
	f.open[in] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, in)
	}()
	if dial == nil {
		return
	}
	out, err := dial(ctx)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // the end of one direction ends both
			done <- struct{}{}
		}()
	}
	<-done
}

// ServeAPI makes the lab's API server available in every pod at the returned URL. As in a cluster,
// it is not behind the mesh.
func (n *Network) ServeAPI(l *lab.Lab) (string, error) {
	api, err := url.Parse(l.APIServerURL())
	if err != nil {
		return "", fmt.Errorf("reading the API server's URL: %w", err)
	}
	for _, node := range n.nodes {
		var listener net.Listener
		if err := node.pod.do(func() (err error) {
			listener, err = net.Listen("tcp", "127.0.0.1:6443") //nolint:noctx // it does not block
			return err
		}); err != nil {
			return "", fmt.Errorf("listening in the pod of %s: %w", node.Name, err)
		}
		n.forward(listener, func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", api.Host)
		})
	}
	return "https://127.0.0.1:6443", nil
}

// Scraped returns the scrape job for this port of each node's pod, which it opens on this machine's
// loopback. Every target has its node's name as a label, as with a PodMonitor.
func (n *Network) Scraped(job string, port int) (map[string]any, error) {
	var targets []any
	for _, node := range n.nodes {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
		if err != nil {
			return nil, fmt.Errorf("listening for those who scrape %s: %w", node.Name, err)
		}
		node.scrape, node.scraped = n.forward(listener, nil), netip.AddrPortFrom(node.PodIP(), uint16(port)).String()
		node.ScrapeAddress = listener.Addr().String()
		targets = append(targets, map[string]any{"targets": []string{node.ScrapeAddress}, "labels": map[string]string{"node": node.Name}})
	}
	n.ScrapeFrom("")
	return map[string]any{"job_name": job, "static_configs": targets}, nil
}

// ScrapeFrom makes Prometheus scrape from the pod of this node, over the mesh. If from is empty,
// Prometheus scrapes from outside the mesh and reaches all pods.
func (n *Network) ScrapeFrom(from string) {
	for _, node := range n.nodes {
		if node.scrape == nil {
			continue
		}
		at := from
		if at == "" {
			at = node.Name
		}
		node.scrape.redirect(func(ctx context.Context) (net.Conn, error) { return n.Dial(ctx, at, "tcp", node.scraped) })
	}
}

// Unscraped makes scrapes of these nodes' pods fail, although the pods exist.
func (n *Network) Unscraped(nodes ...string) {
	for _, name := range nodes {
		n.Node(name).scrape.redirect(nil)
	}
}
