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
	// maxAnswer is the largest body of an answer that is read, in bytes. A normal answer has a short
	// text. maxHeader is the largest header, in bytes.
	maxAnswer = 4 << 10
	maxHeader = 16 << 10
)

// tlsConfig returns the TLS configuration for the pod's address, or nil for http. It is called for
// each connection, so a new CA file needs no restart.
func (c *Client) tlsConfig(ip netip.Addr) (*tls.Config, error) {
	if c.o.Scheme != "https" {
		return nil, nil
	}
	cfg := c.o.TLS // a copy, because NewTLSConfig may change it
	t, err := promconfig.NewTLSConfig(&cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS configuration: %w", err)
	}
	if t.ServerName == "" {
		t.ServerName = ip.String()
	}
	return t, nil
}

// connect opens a new connection to the sidecar, without a proxy. It sends nothing except a TLS
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
		return nil, fmt.Errorf("TLS handshake with %s: %w", at.addr, err)
	}
	return secured, nil
}

// reply is the answer to a request.
type reply struct {
	status int
	body   []byte // the first maxAnswer bytes
	torn   error  // why the body is incomplete
}

// exchange sends one HTTP/1.1 request on the connection, and closes the connection. It does not
// follow redirects.
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
	// An http.Client would follow redirects and keep cookies.
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return reply{status: resp.StatusCode, body: body, torn: err}, nil
}

// url returns a URL with the pod's address and the configured scheme.
func (c *Client) url(at target, path string) string {
	return c.o.Scheme + "://" + at.addr.String() + path
}
