package civo

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"drydock.dev/drydock/remediations/providers/kit"
)

var errUnused = errors.New("civogo sent no request")

const (
	// civogo's bodies have only two short strings.
	maxRequest = 64 << 10
	// dialTimeout is the limit for the TCP connection, and again for the TLS handshake.
	dialTimeout = 10 * time.Second
)

// gateway accepts exactly one request from civogo on the loopback interface, and sends it to Civo.
// The package comment has the reason.
type gateway struct {
	ctx    context.Context // the request to Civo ends with it; civogo takes no context
	api    *url.URL
	key    string
	token  string // civogo sends it as its API key
	gate   *kit.Gate
	server *http.Server
	url    string

	mu     sync.Mutex
	used   bool
	answer answer
	err    error // why there is no complete answer
}

// answer is Civo's answer without the body, which civogo decodes.
type answer struct {
	status int  // 0 if there is no complete answer
	page   bool // the body is HTML, so it is not from Civo's API
	// retryAfter is how long Civo, or a proxy before it, asks clients to wait.
	retryAfter time.Duration
}

func openGateway(ctx context.Context, api *url.URL, key string, g *kit.Gate) (*gateway, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		var errV6 error
		if listener, errV6 = new(net.ListenConfig).Listen(ctx, "tcp", "[::1]:0"); errV6 != nil {
			return nil, fmt.Errorf("listening on the loopback interface: %w", err)
		}
	}
	gw := &gateway{
		ctx: ctx, api: api, key: key, token: rand.Text(), gate: g,
		url: "http://" + listener.Addr().String(), err: errUnused,
	}
	gw.server = &http.Server{Handler: gw, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = gw.server.Serve(listener) }()
	return gw, nil
}

func (g *gateway) close() { _ = g.server.Close() }

func (g *gateway) result() (answer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answer, g.err
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Other programs on this host can reach the port, too. Only civogo has the token, and only its
	// first request is accepted.
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("bearer "+g.token)) != 1 || !g.first() {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	got, body, err := g.forward(r)
	g.mu.Lock()
	g.answer, g.err = got, err
	g.mu.Unlock()
	status := got.status
	if err != nil || status < http.StatusOK {
		status = http.StatusBadGateway // civogo only needs an error; the real outcome is in result
	}
	// Civo's headers are not passed on: a Location would make civogo repeat the request.
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (g *gateway) first() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.used
	g.used = true
	return first
}

func (g *gateway) forward(r *http.Request) (answer, []byte, error) {
	sent, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return answer{}, nil, fmt.Errorf("reading civogo's request: %w", err)
	}
	target := *g.api
	target.Path = strings.TrimRight(target.Path, "/") + r.URL.Path
	target.RawQuery = r.URL.RawQuery
	// The body is in memory, so the transport sends it together with the headers, or sends nothing.
	req, err := http.NewRequestWithContext(g.ctx, r.Method, target.String(), bytes.NewReader(sent))
	if err != nil {
		return answer{}, nil, fmt.Errorf("building the request: %w", err)
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Connection")
	req.Header.Del("Accept-Encoding") // the transport sets it itself, and then limits the size of the decompressed answer
	req.Header.Set("Authorization", "bearer "+g.key)
	transport := kit.Transport(dialTimeout)
	transport.Proxy = http.ProxyFromEnvironment
	transport.DisableKeepAlives = true                   // a reused connection could lead to a silent second try
	got := kit.Exchange(transport, req, answers, g.gate) // not a Client, because a Client follows redirects
	return answer{status: got.Status, page: bytes.HasPrefix(bytes.TrimSpace(got.Body), []byte("<")), retryAfter: got.Again}, got.Body, got.Err
}
