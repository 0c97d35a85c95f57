package receiver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/intake"
)

const secret = "s3cret-token"

// book is a Recorder that stores the alerts that it gets. verdict returns the result for an alert;
// it may be nil.
type book struct {
	verdict func(alert) (intake.Result, error)

	mu      sync.Mutex
	written []alert
}

// RecorderFunc is a Recorder of one function.
type RecorderFunc func(ctx context.Context, alert alert) (intake.Result, error)

// Record calls f.
func (f RecorderFunc) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (intake.Result, error) {
	return f(ctx, alert{Labels: labels, Status: status, StartsAt: startsAt})
}

func (b *book) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (intake.Result, error) {
	return RecorderFunc(b.record).Record(ctx, labels, status, startsAt)
}

func (b *book) record(_ context.Context, a alert) (intake.Result, error) {
	result := intake.Accepted
	if b.verdict != nil {
		var err error
		if result, err = b.verdict(a); err != nil {
			return "", err
		}
	}
	if result.Taken() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.written = append(b.written, a)
	}
	return result, nil
}

// names returns the nodes of the written alerts, sorted, with their statuses.
func (b *book) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := []string{}
	for _, a := range b.written {
		names = append(names, a.Labels["node"]+" "+a.Status)
	}
	sort.Strings(names)
	return names
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Recorder == nil {
		o.Recorder = &book{}
	}
	s, err := New(o)
	require.NoError(t, err)
	return s
}

// start runs the server until the test ends, and returns its address.
func start(t testing.TB, s *Server) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case <-s.Listening():
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
	}
	return s.Addr().String()
}

func request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+secret)
	return r
}

func do(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, r)
	return w
}

func fire(node string) string { return alertJSON("firing", node) }

func alertJSON(status, node string) string {
	return fmt.Sprintf(`{"status":%q,"labels":{"alertname":"NodeNotReady","node":%q},"annotations":{"summary":"s"},"startsAt":"2026-11-20T20:55:00Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://p/graph","fingerprint":"00"}`, status, node)
}

func postOf(alerts ...string) string {
	return `{"version":"4","groupKey":"{}:{}","truncatedAlerts":0,"receiver":"drydock","status":"firing","alerts":[` + strings.Join(alerts, ",") + `],"tomorrow":{"key":1}}`
}

// errorOf returns the sentence of an answer with an error.
func errorOf(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	var answer map[string]string
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	require.Len(t, answer, 1)
	require.NotEmpty(t, answer["error"])
	return answer["error"]
}
