package alertmanager

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alerts"
)

var began = time.Date(2026, 11, 20, 20, 55, 0, 0, time.UTC)

// shown returns an alert as a replica shows it.
func shown(state string, labels map[string]string) *models.GettableAlert {
	start, end, updated := strfmt.DateTime(began), strfmt.DateTime(began.Add(time.Hour)), strfmt.DateTime(began.Add(time.Minute))
	// The real API has a true fingerprint here. This one is wrong, to show that Drydock does not read
	// it.
	lie := "0000000000000000"
	receiver := "drydock"
	return &models.GettableAlert{
		Alert:       models.Alert{Labels: labels},
		Annotations: models.LabelSet{},
		EndsAt:      &end, StartsAt: &start, UpdatedAt: &updated,
		Fingerprint: &lie,
		Receivers:   []*models.ReceiverReference{{Name: &receiver}},
		Status:      &models.AlertStatus{State: &state, SilencedBy: []string{}, InhibitedBy: []string{}, MutedBy: []string{}},
	}
}

func silenced(a *models.GettableAlert, ids ...string) *models.GettableAlert {
	a.Status.SilencedBy = ids
	return a
}

func inhibited(a *models.GettableAlert, by ...string) *models.GettableAlert {
	a.Status.InhibitedBy = by
	return a
}

func list(t testing.TB, alerts ...*models.GettableAlert) []byte {
	t.Helper()
	if alerts == nil {
		alerts = []*models.GettableAlert{}
	}
	b, err := json.Marshal(alerts)
	require.NoError(t, err)
	return b
}

// replies returns a replica that answers every request with a list of alerts.
func replies(t testing.TB, alerts ...*models.GettableAlert) string {
	t.Helper()
	return says(t, http.StatusOK, "application/json", list(t, alerts...))
}

// says returns a replica that gives the same answer to every request.
func says(t testing.TB, code int, contentType string, body []byte) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write(body)
	})
}

// parts returns a replica with a handler for each path below /api/v2. It answers GET alerts with
// the list, and everything else with 404.
func parts(t testing.TB, list []byte, handlers map[string]http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v2/alerts", jsonly(list))
	for pattern, h := range handlers {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/v2"+path, h)
	}
	return serve(t, mux.ServeHTTP)
}

// jsonly returns a handler that answers with JSON.
func jsonly(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

// code returns a handler that answers with a status and, unless it is empty, a text.
func code(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// patience is the time limit for a replica that never answers. It is long enough for a replica that
// answers on a busy machine.
const patience = 5 * time.Second

// hang never answers.
func hang(_ http.ResponseWriter, r *http.Request) {
	// The server notices that its client left only after the body was read.
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveAt starts a server at one address and port of this machine.
func serveAt(t testing.TB, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(h)
	require.NoError(t, s.Listener.Close())
	s.Listener = l
	t.Cleanup(s.Close)
	return s
}

func portOf(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u.Port()
}

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// only polls a client of one replica, and returns the replica's answer.
func only(t testing.TB, o Options) alerts.Replica {
	t.Helper()
	replicas := newClient(t, o).Look(t.Context())
	require.Len(t, replicas, 1)
	return replicas[0]
}

// names are the addresses of host names, for a resolver in tests.
type names map[string][]string

func (n names) resolve(_ context.Context, host string) ([]string, error) {
	if a, ok := n[host]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
