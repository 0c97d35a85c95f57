package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"drydock.dev/drydock/internal/text"
	"k8s.io/client-go/rest"
)

const (
	// apiSilence is how long a request waits for the first or for further data of an answer. A watch
	// gets a bookmark every minute. So a watch without data is broken, and the client opens a new one.
	apiSilence = 90 * time.Second
	// apiRetryAfter is the longest Retry-After that Drydock obeys.
	apiRetryAfter = 5 * time.Second
)

// bounded makes clients end a request when the API server stops sending.
func bounded(c *rest.Config) {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return patience{next: next, silence: apiSilence, retryAfter: apiRetryAfter}
	})
}

// patience ends a request that receives no data for the duration silence. It reduces a longer
// Retry-After to retryAfter.
type patience struct {
	next                http.RoundTripper
	silence, retryAfter time.Duration
}

var errSilent = errors.New("the API server sent nothing")

// RoundTrip implements http.RoundTripper.
func (p patience) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(p.silence, func() { cancel(fmt.Errorf("%w for %s", errSilent, text.Duration(p.silence))) })
	resp, err := p.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && time.Duration(seconds)*time.Second > p.retryAfter {
		resp.Header.Set("Retry-After", strconv.Itoa(int(p.retryAfter/time.Second)))
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // for example exec: what follows is not an answer to this request
		timer.Stop()
		return resp, nil
	}
	resp.Body = &attended{ReadCloser: resp.Body, timer: timer, silence: p.silence, ctx: ctx, cancel: cancel}
	return resp, nil
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (p patience) WrappedRoundTripper() http.RoundTripper { return p.next }

// attended ends the request if no data arrive for the duration silence.
type attended struct {
	io.ReadCloser
	timer   *time.Timer
	silence time.Duration
	ctx     context.Context //nolint:containedctx // of the request, which ends with its body
	cancel  context.CancelCauseFunc
	once    sync.Once
}

func (a *attended) Read(b []byte) (int, error) {
	a.timer.Reset(a.silence)
	n, err := a.ReadCloser.Read(b)
	a.timer.Stop() // the time until the caller reads again does not count
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(a.ctx); errors.Is(cause, errSilent) {
			err = cause
		}
	}
	return n, err
}

func (a *attended) Close() error {
	err := a.ReadCloser.Close()
	a.once.Do(func() {
		a.timer.Stop()
		a.cancel(nil)
	})
	return err
}
