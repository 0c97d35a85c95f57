package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/bounded"
)

// TestAListTakesNoMoreMemoryThanIsPromised, whatever the server answers. All allocations together
// are bounded, and the collector frees most of them in between. The test is not parallel: the count
// is the whole program's.
func TestAListTakesNoMoreMemoryThanIsPromised(t *testing.T) {
	const promised, garbage = 64 << 20, 2
	list := func(items string) string {
		return `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[` + items + `]}`
	}
	many := func(n int, one string) string { return strings.Repeat(one+",", n-1) + one }
	real := `{"metadata":{"name":"n"},"spec":{"providerID":"` + strings.Repeat("x", 12<<10) + `"},"status":{"conditions":[` + many(200, `{"type":"Ready"}`) + `]}}`
	for name, c := range map[string]struct {
		body string
		want int // how many objects; 0: it is refused
	}{
		"a page of large objects":         {list(many(perPage, real)), perPage},
		"more objects than are asked for": {list(many(perPage+1, `{}`)), 0},
		"2 MB of empty objects":           {list(many(700_000, `{}`)), 0},
		"one object with lists without end": {
			list(`{"spec":{"taints":[` + many(700_000, `{}`) + `]}}`), 0,
		},
		"one object with as many values as are read": {list(`{"status":{"images":[` + many(maxValues/2-10, `{}`) + `]}}`), 1},
		"nested without end":                         {list(strings.Repeat("[", 100_000)), 0},
		"a page that is too long":                    {list(`{"metadata":{"name":"` + strings.Repeat("x", maxAnswer) + `"}}`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) }))
			t.Cleanup(server.Close)
			client, err := New(Options{REST: &rest.Config{Host: server.URL}, APIVersion: "v1", Timeout: time.Minute})
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := List[corev1.Node](t.Context(), client, "nodes", "Node", nil)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(promised*garbage))
			if c.want > 0 {
				require.NoError(t, err)
				require.Len(t, got, c.want)
				return
			}
			require.ErrorIs(t, err, bounded.ErrTooLarge)
			require.ErrorContains(t, err, "Drydock rejects the answer to GET nodes")
		})
	}
}

// TestAListedObjectSaysWhatItIs: the API server leaves out the kind of a list's built-in objects.
func TestAListedObjectSaysWhatItIs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := map[string]string{"/api/v1/nodes": "NodeList", "/api/v1/pods": "PodList"}[r.URL.Path]
		_, _ = w.Write([]byte(`{"kind":"` + kind + `","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b","namespace":"web"}}]}`))
	}))
	t.Cleanup(server.Close)
	client, err := New(Options{REST: &rest.Config{Host: server.URL}, APIVersion: "v1", Timeout: time.Minute})
	require.NoError(t, err)
	nodes, err := List[corev1.Node](t.Context(), client, "nodes", "Node", nil)
	require.NoError(t, err)
	require.Equal(t, "Node a", Name(&nodes[0]))
	pods, err := List[corev1.Pod](t.Context(), client, "pods", "Pod", nil)
	require.NoError(t, err)
	require.Equal(t, "Pod web/b", Name(&pods[1]))
}
