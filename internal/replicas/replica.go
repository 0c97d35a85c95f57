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

// Replica is one address of an endpoint, with the connections to it.
type Replica struct {
	// Client sends requests for the endpoint's URL to the address.
	Client   *http.Client
	endpoint *Endpoint
	// secrets are what proves who Drydock is. No error shows them.
	secrets *redact.Keyring
}

// Replica prepares to ask the endpoint at the address, and at no other. A request's URL keeps the
// name, so the Host header and the name that TLS checks stay right; only the dialling differs.
// Behind a proxy nothing differs. Files that the HTTP configuration names are read here.
func (e *Endpoint) Replica(address string) (*Replica, error) {
	o := e.options
	// net/http dials on after the request's context has ended, so without its own limit each
	// request would leave one more dial to a black hole behind.
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

// Explain drops the request's own URL from an error, because the sentence names the replica, and
// says a timeout in words. What the replica wrote stands in it in bounds, and without what proves
// who Drydock is. ctx is the request's.
func (r *Replica) Explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// What net/http says instead is at times only that a connection is closed.
		return fmt.Errorf("no whole answer within %s: %w", r.endpoint.options.Timeout, context.DeadlineExceeded)
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

// Close closes idle connections.
func (r *Replica) Close() { r.Client.CloseIdleConnections() }

// StatusError is an answer with a status that is refused.
type StatusError struct{ Code int }

func (e *StatusError) Error() string {
	said := fmt.Sprintf("it answered %d %s", e.Code, http.StatusText(e.Code))
	if redirects(e.Code) {
		said += ", and redirects are not followed"
	}
	return said
}

func redirects(code int) bool { return code >= 300 && code < 400 }

// guard stands outermost: it learns what proves who Drydock is, and refuses redirects and what is
// no answer before anything is read.
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

// CloseIdleConnections lets http.Client reach the connections below.
func (g guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
