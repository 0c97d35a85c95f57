package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestRetryAfterIsBounded: one answer must not keep Drydock waiting for ten minutes.
func TestRetryAfterIsBounded(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}}]}`))
	}))
	t.Cleanup(server.Close)
	c := &rest.Config{Host: server.URL}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return patience{next: next, silence: time.Minute, retryAfter: time.Second}
	})
	client, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, nodes.Items, 1)
	require.EqualValues(t, 2, asked.Load())
}

// TestAWatchThatSaysNothingEnds, so that it is opened again. The control is a watch that continues.
func TestAWatchThatSaysNothingEnds(t *testing.T) {
	const silence = 2 * time.Second
	for name, c := range map[string]struct {
		before bool
		events int
	}{
		"before the answer":                     {before: true},
		"within the answer, after three events": {events: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !c.before {
					for range c.events {
						_, _ = w.Write([]byte("{}\n"))
						_ = http.NewResponseController(w).Flush()
						time.Sleep(silence / 2) // an API server that is slow, and not silent
					}
				}
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			client := &http.Client{Transport: patience{next: http.DefaultTransport, silence: silence, retryAfter: time.Second}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			require.NoError(t, err)
			resp, err := client.Do(req)
			if c.before {
				require.ErrorIs(t, err, errSilent)
				return
			}
			require.NoError(t, err)
			defer func() { require.NoError(t, resp.Body.Close()) }()
			got, err := io.ReadAll(resp.Body)
			require.ErrorIs(t, err, errSilent)
			require.Equal(t, "{}\n{}\n{}\n", string(got), "all that came was read")
		})
	}
}
