package alertmanager

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

// TestATokenThatNeverComesCostsOnePoll: the library requests tokens without the poll's context, and
// its lock makes every later request wait for the unanswered one.
func TestATokenThatNeverComesCostsOnePoll(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	ended := make(chan struct{}, 1)
	tokens := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if silent.CompareAndSwap(true, false) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			ended <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"a-token-of-this-test","token_type":"bearer","expires_in":1}`)) // each poll needs a new one
	})
	reg := prometheus.NewRegistry()
	c := newClient(t, Options{
		URLs: []string{replies(t, shown("active", node("n1")))}, Timeout: patience, Registerer: reg,
		HTTPConfig: config.HTTPClientConfig{OAuth2: &config.OAuth2{ClientID: "drydock", ClientSecret: "s", TokenURL: tokens}},
	})
	poll := func() alerts.Replica {
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		defer cancel()
		replicas := c.Look(ctx)
		require.Len(t, replicas, 1)
		return replicas[0]
	}
	require.NoError(t, poll().Err, "the control")
	require.InDelta(t, 1, testutil.ToFloat64(c.up.gauge), 0)

	silent.Store(true)
	require.Regexp(t, "no complete answer within|i/o timeout", poll().Err, "either the poll or the token's connection ends first")
	require.InDelta(t, 0, testutil.ToFloat64(c.up.gauge), 0)
	require.NoError(t, poll().Err, "the next token is given")
	require.InDelta(t, 1, testutil.ToFloat64(c.up.gauge), 0)
	<-ended // the cancelled request does not stay open
}

// TestAPollThatHangsIsLeft: the next poll does not wait for it, and the metric does not show
// success.
func TestAPollThatHangsIsLeft(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var hangs atomic.Bool
	alive := replies(t, shown("active", node("n1")))
	c := newClient(t, Options{URLs: []string{"http://alertmanager:" + portOf(t, alive)}, Timeout: patience, Resolver: func(context.Context, string) ([]string, error) {
		if hangs.Load() {
			<-release // a resolver that ignores its context
		}
		return []string{"127.0.0.1"}, nil
	}})
	require.NoError(t, c.Look(t.Context())[0].Err, "the control")
	hangs.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Look(ctx)[0].Err, context.DeadlineExceeded)
	require.InDelta(t, 0, testutil.ToFloat64(c.up.gauge), 0)
	hangs.Store(false)
	require.NoError(t, c.Look(t.Context())[0].Err)
	require.InDelta(t, 1, testutil.ToFloat64(c.up.gauge), 0)
}
