// Package promhttp makes HTTP transports from Prometheus' http_config. A request through such a
// transport ends when its context ends. Prometheus' library alone does not ensure that: it requests
// OAuth 2 tokens and reads files without the context.
package promhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/config"
)

const (
	userAgent = "drydock"
	// jwtBearer is the OAuth 2 grant type that signs with a key instead of a secret.
	jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// grace is how long RoundTrip waits after the context has ended. A transport that obeys the
	// context returns its own error in this time. Its connections can then be used again.
	grace = 100 * time.Millisecond
	// maxAbandoned bounds abandoned requests that still run.
	maxAbandoned = 32
)

// New returns the transport for cfg. dial opens its connections. OAuth 2 tokens use other
// connections, which are closed after the timeout. name is for Prometheus' library.
func New(cfg config.HTTPClientConfig, name string, timeout time.Duration, dial config.DialContextFunc, options ...config.HTTPClientOption) (http.RoundTripper, error) {
	build := func() (http.RoundTripper, error) { return library(cfg, name, timeout, dial, options) }
	first, err := build()
	if err != nil {
		return nil, err
	}
	return &transport{build: build, current: first}, nil
}

func library(cfg config.HTTPClientConfig, name string, timeout time.Duration, dial config.DialContextFunc, options []config.HTTPClientOption) (http.RoundTripper, error) {
	oauth2 := cfg.OAuth2
	cfg.OAuth2 = nil
	options = append([]config.HTTPClientOption{config.WithUserAgent(userAgent), config.WithDialContextFunc(dial)}, options...)
	rt, err := config.NewRoundTripperFromConfig(cfg, name, options...)
	if err != nil || oauth2 == nil {
		return rt, err
	}
	secret, err := credential(oauth2)
	if err != nil {
		return nil, err
	}
	if oauth2.GrantType == jwtBearer {
		rt = config.NewOAuth2RoundTripper(secret, oauth2, rt, append(options, config.WithDialContextFunc(shortLived(timeout)))...)
	} else if rt, err = withTokens(rt, oauth2, secret, timeout, shortLived(timeout)); err != nil {
		return nil, err
	}
	return config.NewUserAgentRoundTripper(userAgent, rt), nil
}

func credential(o *config.OAuth2) (config.SecretReader, error) {
	text, file, ref := o.ClientSecret, o.ClientSecretFile, o.ClientSecretRef
	if o.GrantType == jwtBearer {
		text, file, ref = o.ClientCertificateKey, o.ClientCertificateKeyFile, o.ClientCertificateKeyRef
	}
	switch {
	case text != "":
		return config.NewInlineSecret(string(text)), nil
	case file != "":
		return config.NewFileSecret(file), nil
	case ref != "":
		return nil, errors.New("oauth2 has a reference to a secret, which Drydock cannot resolve; give the secret or its file")
	}
	return config.NewInlineSecret(""), nil
}

// shortLived gives each connection a deadline after the timeout. So no request over it takes
// longer, even without a context.
func shortLived(timeout time.Duration) config.DialContextFunc {
	dialer := &net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
}

// transport abandons a request whose context has ended, and uses a new transport from then on.
// Otherwise later requests would wait behind the abandoned one.
type transport struct {
	build func() (http.RoundTripper, error)

	mu        sync.Mutex
	current   http.RoundTripper
	abandoned int
}

type result struct {
	response *http.Response
	err      error
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	rt, abandoned := t.current, t.abandoned
	t.mu.Unlock()
	if abandoned >= maxAbandoned {
		return nil, fmt.Errorf("%d earlier requests were abandoned and are still running", abandoned)
	}
	done := make(chan result, 1)
	go func() {
		response, err := rt.RoundTrip(req) //nolint:bodyclose // the caller closes the result
		done <- result{response, err}
	}()
	select {
	case r := <-done:
		return r.response, r.err
	case <-req.Context().Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.response, r.err
	case <-timer.C:
	}
	t.abandon(rt, done)
	return nil, context.Cause(req.Context())
}

func (t *transport) abandon(rt http.RoundTripper, done <-chan result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abandoned++
	if t.current == rt {
		if fresh, err := t.build(); err == nil {
			t.current = fresh
		}
	}
	go func() {
		if r := <-done; r.response != nil {
			_ = r.response.Body.Close()
		}
		closeIdle(rt)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.abandoned--
	}()
}

// CloseIdleConnections closes the connections that no request uses.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	rt := t.current
	t.mu.Unlock()
	closeIdle(rt)
}

func closeIdle(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
