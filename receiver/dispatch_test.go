package receiver

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/atonce"
	"drydock.dev/drydock/remediations/intake"
)

func group(n int) string {
	alerts := make([]string, n)
	for i := range alerts {
		alerts[i] = fire(fmt.Sprintf("n%d", i))
	}
	return postOf(alerts...)
}

func TestOneThatCannotBeWrittenLosesNoOther(t *testing.T) {
	b := &book{verdict: func(a alert) (intake.Result, error) {
		if a.Labels["node"] == "n7" {
			return "", errors.New("conflict")
		}
		return intake.Accepted, nil
	}}
	w := do(newServer(t, Options{Recorder: b}), request("POST", "/v1/alerts", group(100)))
	require.Equal(t, 503, w.Code)
	require.Equal(t, "5", w.Header().Get("Retry-After"))
	require.Contains(t, errorOf(t, w), "1 of 100 alerts")
	require.Len(t, b.names(), 99)
}

func TestWritesAtOnceAreBounded(t *testing.T) {
	var writes atonce.Count
	full := make(chan struct{})
	var once sync.Once
	s := newServer(t, Options{Recorder: RecorderFunc(func(context.Context, alert) (intake.Result, error) {
		defer writes.Leave()
		if writes.Enter() == writesAtOnce {
			once.Do(func() { close(full) })
		}
		<-full // no call continues until sixteen have arrived
		return intake.Accepted, nil
	})})
	require.Equal(t, 200, do(s, request("POST", "/v1/alerts", group(100))).Code)
	require.Equal(t, writesAtOnce, writes.Most())
}

func TestTheDeadlineBoundsEvenADeafRecorder(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	returned := make(chan struct{})
	s := newServer(t, Options{Recorder: RecorderFunc(func(_ context.Context, a alert) (intake.Result, error) {
		if a.Labels["node"] == "n1" {
			<-release
			close(returned)
		}
		return intake.Accepted, nil
	})})
	s.timeouts.dispatch = 3 * time.Second
	w := do(s, request("POST", "/v1/alerts", group(3)))
	require.Equal(t, 503, w.Code)
	require.Contains(t, errorOf(t, w), "1 of 3 alerts were not accepted within 3s")
	require.Len(t, s.posts, 1, "it holds its place while it runs")
	close(release)
	<-returned
	require.Eventually(t, func() bool { return len(s.posts) == 0 }, time.Minute, time.Millisecond)
}

// TestAPostThatWasGivenUpIsWrittenToItsEnd: the writes of a post end within their usual time, even
// if its client has given up, and keep the post's place until then. A cancelled write would
// continue at the API server while another one starts here, and in a storm no write would complete.
func TestAPostThatWasGivenUpIsWrittenToItsEnd(t *testing.T) {
	begun, given, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := newServer(t, Options{Recorder: RecorderFunc(func(ctx context.Context, _ alert) (intake.Result, error) {
		close(begun)
		<-given
		over <- ctx.Err()
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		return intake.Accepted, nil
	})})
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan *httptest.ResponseRecorder)
	go func() { answered <- do(s, request("POST", "/v1/alerts", group(1)).WithContext(ctx)) }()
	<-begun
	leave()
	require.Len(t, s.posts, 1, "its place is not another's yet")
	close(given)
	require.NoError(t, <-over)
	require.Equal(t, 200, (<-answered).Code)
}

func TestPostsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newServer(t, Options{Recorder: RecorderFunc(func(context.Context, alert) (intake.Result, error) {
		<-release
		return intake.Accepted, nil
	})})
	s.timeouts.place = 3 * time.Second
	var posts sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, maxPosts)
	for i := range answers {
		posts.Go(func() { answers[i] = do(s, request("POST", "/v1/alerts", group(1))) })
	}
	require.Eventually(t, func() bool { return len(s.posts) == maxPosts }, time.Minute, time.Millisecond)
	w := do(s, request("POST", "/v1/alerts", group(1)))
	require.Equal(t, 503, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Contains(t, errorOf(t, w), "is handling 16 posts, the most at the same time")

	// A waiting post gets the place of the first one to end.
	s.timeouts.place = time.Minute
	waiting := make(chan *httptest.ResponseRecorder, 1)
	go func() { waiting <- do(s, request("POST", "/v1/alerts", group(1))) }()
	close(release)
	require.Equal(t, 200, (<-waiting).Code)
	posts.Wait()
	for _, w := range answers {
		require.Equal(t, 200, w.Code)
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	var logged atomic.Int32
	log := funcr.New(func(_, line string) {
		logged.Add(1)
		if strings.Contains(line, secret) {
			t.Error("the token is in the log")
		}
	}, funcr.Options{})
	cases := map[string]Options{
		"of the recorder": {Recorder: RecorderFunc(func(_ context.Context, a alert) (intake.Result, error) {
			if a.Labels["node"] == "n1" {
				panic("out of cheese")
			}
			return intake.Accepted, nil
		})},
		"of a hook": {MaxBodyBytes: 10, Oversized: func(string) { panic("out of cheese") }},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			logged.Store(0)
			o.Logger = log
			s := newServer(t, o)
			w := do(s, request("POST", "/v1/alerts", group(3)))
			require.Equal(t, 500, w.Code)
			require.Contains(t, errorOf(t, w), "Drydock's log has the details")
			require.NotContains(t, w.Body.String(), "cheese")
			require.Positive(t, logged.Load())
			require.Eventually(t, func() bool { return len(s.posts) == 0 }, time.Minute, time.Millisecond)
		})
	}
}

func TestTruncatedAlertsAreReported(t *testing.T) {
	var truncated uint64
	s := newServer(t, Options{Truncated: func(n uint64) { truncated += n }})
	body := `{"version":"4","truncatedAlerts":12,"alerts":[` + fire("n1") + `]}`
	require.Equal(t, 200, do(s, request("POST", "/v1/alerts", body)).Code)
	require.EqualValues(t, 12, truncated)
}
