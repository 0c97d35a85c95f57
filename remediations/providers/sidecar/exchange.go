package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	promconfig "github.com/prometheus/common/config"
)

const (
	// maxAnswer bounds the body of an answer, which is at most a short text; maxHeader bounds its
	// header.
	maxAnswer = 4 << 10
	maxHeader = 16 << 10
)

// tlsConfig returns nil for http. It is made for each connection, so that a new authority needs no
// restart.
func (c *Client) tlsConfig(ip netip.Addr) (*tls.Config, error) {
	if c.o.Scheme != "https" {
		return nil, nil
	}
	cfg := c.o.TLS // a copy: the check may change it
	t, err := promconfig.NewTLSConfig(&cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS configuration: %w", err)
	}
	if t.ServerName == "" {
		t.ServerName = ip.String()
	}
	return t, nil
}

// connect opens a new connection to the sidecar, without any proxy. Nothing is sent but a TLS
// handshake.
func (c *Client) connect(ctx context.Context, at target) (net.Conn, error) {
	cfg, err := c.tlsConfig(at.addr.Addr())
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.addr.String())
	if err != nil || cfg == nil {
		return conn, err
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("speaking TLS with %s: %w", at.addr, err)
	}
	return secured, nil
}

// reply is the answer to a request.
type reply struct {
	status int
	body   []byte // its beginning
	torn   error  // why the body is not whole
}

// exchange sends one request on a connection, and closes the connection. It is HTTP/1.1, and a
// redirect is an answer like any other.
func exchange(conn net.Conn, req *http.Request) (reply, error) {
	once := make(chan net.Conn, 1)
	once <- conn
	dial := func(context.Context, string, string) (net.Conn, error) {
		select {
		case conn := <-once:
			return conn, nil
		default:
			return nil, errors.New("the connection was used already")
		}
	}
	transport := &http.Transport{
		DialContext: dial, DialTLSContext: dial,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	defer conn.Close()
	req.Header.Set("User-Agent", "drydock")
	// Not a Client, because a Client follows redirects and keeps cookies.
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return reply{status: resp.StatusCode, body: body, torn: err}, nil
}

// url makes a URL from the pod's address and the configuration.
func (c *Client) url(at target, path string) string {
	return c.o.Scheme + "://" + at.addr.String() + path
}
