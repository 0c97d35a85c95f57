package lab_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
)

// grace is how long a node of the shared lab may be silent. It is longer than the delays of a busy
// machine and a restart of the API server.
const grace = 12 * time.Second

// hook is a webhook that passes each alert on as "alertname/node/status".
func hook(t *testing.T, token string) (url string, alerts <-chan string) {
	c := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var post struct {
			Alerts []struct {
				Status string
				Labels map[string]string
			}
		}
		if r.Header.Get("Authorization") != "Bearer "+token || json.NewDecoder(r.Body).Decode(&post) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, a := range post.Alerts {
			c <- a.Labels["alertname"] + "/" + a.Labels["node"] + "/" + a.Status
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, c
}

// awaitAlert waits for the next alert about the node. It ignores alerts about other nodes, which
// may be late for a moment on a busy machine.
func awaitAlert(t *testing.T, alerts <-chan string, node, want string) {
	t.Helper()
	deadline := time.After(lab.Patience)
	for {
		select {
		case got := <-alerts:
			if got == want {
				return
			}
			if !strings.Contains(got, "/"+node+"/") {
				continue
			}
			require.Failf(t, "another alert came", "want %s, got %s", want, got)
		case <-deadline:
			require.Failf(t, "the alert did not come", "want %s", want)
		}
	}
}

func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// awaitNode watches the node until it is as wanted, and returns how long that took.
func awaitNode(t *testing.T, l *lab.Lab, name string, is func(*corev1.Node) bool) time.Duration {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	w, err := l.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	defer w.Stop()
	for event := range w.ResultChan() {
		if node, ok := event.Object.(*corev1.Node); ok && is(node) {
			return time.Since(begun)
		}
	}
	require.Failf(t, "the node did not get there", "%s within %s", name, lab.Patience)
	return 0
}

// awaitRenewal returns when the lease is renewed again.
func awaitRenewal(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	w, err := l.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + node})
	require.NoError(t, err)
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == "MODIFIED" {
			t.Logf("lease renewed within %s", time.Since(begun))
			return
		}
	}
	require.Fail(t, "the lease is not renewed")
}

// requireKept asserts that the lab continues to renew every node's lease, and that every node is
// Ready. On a busy machine with a slow API server, a node may be Unknown for a moment.
func requireKept(t *testing.T, l *lab.Lab) {
	t.Helper()
	nodes, err := l.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, nodes.Items)
	for _, node := range nodes.Items {
		awaitRenewal(t, l, node.Name)
		awaitRenewal(t, l, node.Name)
		awaitNode(t, l, node.Name, func(n *corev1.Node) bool { return ready(n) == corev1.ConditionTrue && n.Status.NodeInfo.BootID != "" })
	}
}

// children returns the processes whose command line contains the folder.
func children(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, path := range lines {
		line, err := os.ReadFile(path) // a process that has just ended does not count
		if err == nil && strings.Contains(string(line), dir) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}
