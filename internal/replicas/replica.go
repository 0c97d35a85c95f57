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
	// secrets are Drydock's credentials. No error shows them.
	secrets *redact.Keyring
}

// Replica prepares requests to the endpoint at this address only. A request's URL keeps the name,
// so the Host header and the name that TLS checks stay correct; only the dialling differs. Behind a
// proxy nothing differs. Replica reads the files that the HTTP configuration names.
func (e *Endpoint) Replica(address string) (*Replica, error) {
	o := e.options
	// net/http continues to dial after the request's context has ended. Without its own limit, each
	// request to an unreachable address would leave one more dial running.
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

// Explain removes the request's own URL from an error, because the sentence names the replica, and
// describes a timeout in words. It bounds what the replica wrote, and removes Drydock's
// credentials. ctx is the request's.
func (r *Replica) Explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// net/http sometimes reports only a closed connection instead.
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

// StatusError is a refused answer because of its status.
type StatusError struct{ Code int }

func (e *StatusError) Error() string {
	said := fmt.Sprintf("it answered %d %s", e.Code, http.StatusText(e.Code))
	if redirects(e.Code) {
		said += ", and redirects are not followed"
	}
	return said
}

func redirects(code int) bool { return code >= 300 && code < 400 }

// guard is the outermost transport. It records Drydock's credentials, and refuses redirects and
// invalid answers before the body is read.
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
