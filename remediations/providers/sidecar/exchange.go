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
	// maxAnswer and maxHeader are in bytes. A normal answer has a short text.
	maxAnswer = 4 << 10
	maxHeader = 16 << 10
)

// tlsConfig returns nil for http. It is called for each connection, so a new CA file needs no
// restart.
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

// connect uses no proxy, and sends nothing except a TLS handshake.
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

type reply struct {
	status int
	body   []byte // the first maxAnswer bytes
	torn   error  // why the body is incomplete
}

// exchange closes the connection, and does not follow redirects.
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

func (c *Client) url(at target, path string) string {
	return c.o.Scheme + "://" + at.addr.String() + path
}
