package promhttp

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
)

// stuck is a transport of a library that ignores the context.
type stuck struct{ release chan struct{} }

func (s stuck) RoundTrip(*http.Request) (*http.Response, error) {
	<-s.release
	return nil, context.Canceled
}

// TestATransportThatIgnoresTheContextIsGivenUp and the next request does not wait behind it.
func TestATransportThatIgnoresTheContextIsGivenUp(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(answers.Close)
	release := make(chan struct{})
	rt := &transport{current: stuck{release}, build: func() (http.RoundTripper, error) {
		return New(config.HTTPClientConfig{}, "test", time.Minute, (&net.Dialer{}).DialContext)
	}}
	ask := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, answers.URL, http.NoBody)
		require.NoError(t, err)
		resp, err := rt.RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, ask(ctx), context.DeadlineExceeded)
	require.NoError(t, ask(t.Context()))

	waiting := func() int {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		return rt.abandoned
	}
	require.Equal(t, 1, waiting())
	close(release)
	require.Eventually(t, func() bool { return waiting() == 0 }, time.Minute, time.Millisecond, "it is forgotten once it returns")
}

// TestTooManyRequestsThatHangRefuseFurtherOnes: if a file system hangs for ever, the number of
// abandoned requests has a limit.
func TestTooManyRequestsThatHangRefuseFurtherOnes(t *testing.T) {
	rt := &transport{abandoned: maxAbandoned}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1", http.NoBody)
	require.NoError(t, err)
	_, err = rt.RoundTrip(req) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "32 earlier requests were abandoned and are still running")
}
