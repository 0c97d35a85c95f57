package replicas

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/common/config"

	"drydock.dev/drydock/internal/promhttp"
	"drydock.dev/drydock/internal/redact"
)

// Replica is one address of an endpoint, with the connections to that address.
type Replica struct {
	// Client sends requests for the endpoint's URL to this address.
	Client   *http.Client
	endpoint *Endpoint
	// secrets are credentials that Explain removes from errors.
	secrets *redact.Keyring
}

// Replica returns the replica at this address. Only the dialler uses the address: a request's URL
// keeps the host name, so that the Host header and the name in TLS are correct. With a proxy, the
// address is not used at all.
func (e *Endpoint) Replica(address string) (*Replica, error) {
	o := e.options
	// net/http continues to dial after a request's context has ended. Without a limit here, each
	// request to an unreachable address would leave a dial running.
	dialer := &net.Dialer{Timeout: o.Timeout}
	dial := func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == e.url.Host && !e.asGiven {
			to = net.JoinHostPort(address, e.url.Port())
		}
		return dialer.DialContext(ctx, network, to)
	}
	var options []config.HTTPClientOption
	if o.Idle > 0 {
		options = append(options, config.WithIdleConnTimeout(o.Idle))
	}
	rt, err := promhttp.New(o.HTTP, strings.ToLower(o.Of), o.Timeout, dial, options...)
	if err != nil {
		return nil, err
	}
	secrets := &redact.Keyring{Mark: "[secret]"}
	return &Replica{endpoint: e, secrets: secrets, Client: &http.Client{Transport: guard{next: rt, secrets: secrets, judge: o.Judge}}}, nil
}

// Explain returns the error of a request for people. It names a timeout as such, removes Drydock's
// credentials and the URL, and limits a text from the replica. ctx is the request's context.
func (r *Replica) Explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// After a timeout, net/http sometimes reports only a closed connection.
		return fmt.Errorf("no complete answer within %s: %w", r.endpoint.options.Timeout, context.DeadlineExceeded)
	}
	if refused := redact.TokenRefused(err); refused != nil {
		return refused
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return r.secrets.Error(err)
}

// Close closes the idle connections.
func (r *Replica) Close() { r.Client.CloseIdleConnections() }

// StatusError is the error for an answer that is refused because of its status code.
type StatusError struct{ Code int }

func (e *StatusError) Error() string {
	said := fmt.Sprintf("it answered %d %s", e.Code, http.StatusText(e.Code))
	if redirects(e.Code) {
		said += ", and redirects are not followed"
	}
	return said
}

func redirects(code int) bool { return code >= 300 && code < 400 }

// guard is the outermost transport. It records Drydock's credentials, so that Explain can remove
// them. It refuses redirects and invalid answers before the body is read.
type guard struct {
	next    http.RoundTripper
	secrets *redact.Keyring
	judge   func(*http.Request, *http.Response) error
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req.WithContext(g.secrets.Trace(req.Context())))
	if err != nil {
		return nil, err
	}
	if redirects(resp.StatusCode) {
		err = &StatusError{resp.StatusCode}
	} else {
		err = g.judge(req, resp)
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// CloseIdleConnections passes http.Client.CloseIdleConnections on to the wrapped transport.
func (g guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
