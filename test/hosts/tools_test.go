package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

func (y *yard) await(what string, wanted func() bool) {
	y.t.Helper()
	require.Eventually(y.t, wanted, lab.Patience, tick, what)
}

func (y *yard) node(name string) *corev1.Node {
	y.t.Helper()
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	require.NoError(y.t, err)
	return n
}

// ready waits until a node's Ready condition is as wanted. It waits also while no API server
// answers.
func (y *yard) ready(name string, want corev1.ConditionStatus) {
	y.t.Helper()
	y.await(fmt.Sprintf("node %s has Ready=%s", name, want), func() bool {
		n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
		return err == nil && remediations.ReadyCondition(n) != nil && remediations.ReadyCondition(n).Status == want
	})
}

// version returns the cluster's present resource version. The version of a single object may be
// older than what a restarted API server remembers.
func (y *yard) version() string {
	y.t.Helper()
	nodes, err := y.lab.Client().CoreV1().Nodes().List(y.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(y.t, err)
	return nodes.ResourceVersion
}

// lost waits until the node has been lost after the given version, even if it is healthy again.
func (y *yard) lost(name, before string) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	list := cache.NewListWatchFromClient(y.lab.Client().CoreV1().RESTClient(), "nodes", "", fields.OneTermEqualSelector("metadata.name", name))
	w, err := watchtools.NewRetryWatcherWithContext(ctx, before, list)
	require.NoError(y.t, err)
	_, err = watchtools.UntilWithoutRetry(ctx, w, func(e watch.Event) (bool, error) {
		n, ok := e.Object.(*corev1.Node)
		return ok && remediations.ReadyCondition(n).Status == corev1.ConditionUnknown, nil
	})
	require.NoError(y.t, err, "node %s is lost", name)
}

// firing returns the names of the alerts in Alertmanager that are about something to repair.
func (y *yard) firing() []string {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodGet, y.lab.AlertmanagerURLs()[0]+"/api/v2/alerts", nil)
	require.NoError(y.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(y.t, err)
	defer func() { _ = res.Body.Close() }()
	var alerts []struct{ Labels map[string]string }
	require.NoError(y.t, json.NewDecoder(res.Body).Decode(&alerts))
	var out []string
	for _, a := range alerts {
		if a.Labels["remediation"] != "" {
			out = append(out, a.Labels["alertname"])
		}
	}
	return out
}

// entries returns the ended repairs on the node for this target, newest first. An empty target is
// the node itself.
func (y *yard) entries(name, target string) []remediations.Entry {
	var out []remediations.Entry
	n, err := y.lab.Client().CoreV1().Nodes().Get(y.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil // this API server may be the one that the test has broken
	}
	for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
		if e.Target == target {
			out = append(out, e)
		}
	}
	return out
}

// ended waits for the end of the node's first repair.
func (y *yard) ended(name string) remediations.Entry {
	y.t.Helper()
	y.await("a repair of node "+name+" ends", func() bool { return len(y.entries(name, "")) > 0 })
	e := y.entries(name, "")
	return e[len(e)-1]
}

// attempted returns as soon as a restart has reached the host.
func (y *yard) attempted(name string) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), lab.Patience)
	defer cancel()
	require.NoError(y.t, y.hosts.Host(name).AwaitAttempt(ctx, hosts.KubeletUnit, y.before[name]), "a restart reaches %s", name)
}

// rescued waits until the history of that node has the end of the first rescue of the API servers.
func (y *yard) rescued(name string) remediations.Entry {
	y.t.Helper()
	y.await("a rescue of the API servers is in the history of node "+name, func() bool { return len(y.entries(name, string(remediations.KindAPIServer))) > 0 })
	e := y.entries(name, string(remediations.KindAPIServer))
	return e[len(e)-1]
}

// restarts returns who restarted the host's kubelet in this test, by the host's own journal. It
// leaves out systemd's own restarts.
func (y *yard) restarts(name string) []string {
	y.t.Helper()
	all, err := y.hosts.Host(name).Restarts(y.t.Context(), hosts.KubeletUnit)
	require.NoError(y.t, err)
	out := []string{}
	for _, r := range all {
		if r.At.After(y.began) && r.By != hosts.BySystemd {
			out = append(out, numbered(r.By))
		}
	}
	return out
}

// withheldBefore is the end of the name of an attempt that was given back once and then made. That
// happens if the API server is slow.
var withheldBefore = regexp.MustCompile(`(-\d+-\d+)-[0-9a-z]{8,}$`)

// numbered returns the attempt's name up to its numbers.
func numbered(attempt string) string { return withheldBefore.ReplaceAllString(attempt, "$1") }

// awaitEvent waits for an Event of this test about the node, or about Drydock's ledger, whose note
// contains the text.
func (y *yard) awaitEvent(node, text string) {
	y.t.Helper()
	y.await(fmt.Sprintf("an Event about %s says %q", node, text), func() bool {
		list, err := y.lab.Client().EventsV1().Events("").List(y.t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=" + node})
		if err != nil {
			return false
		}
		for _, e := range list.Items {
			if !e.EventTime.Time.Before(y.began) && strings.Contains(e.Note, text) {
				return true
			}
		}
		return false
	})
}

// killOn kills Drydock when the API server has written a repair of the node in that phase, before
// Drydock gets the answer.
func killOn(d *lab.Drydock, node string, phase remediations.Phase) func(*http.Response) lab.Verdict {
	return func(res *http.Response) lab.Verdict {
		if !writes(res, node, phase) {
			return lab.Pass
		}
		d.Kill()
		return lab.Reset
	}
}

// writes reports whether the API server has written a repair of the node in that phase.
func writes(res *http.Response, node string, phase remediations.Phase) bool {
	if res.Request.Method != http.MethodPatch || res.Request.URL.Query().Has("dryRun") || !strings.HasSuffix(res.Request.URL.Path, "/nodes/"+node) {
		return false
	}
	body, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return false
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	n, ok := o.(*corev1.Node)
	return err == nil && ok && n.Labels[remediations.PhaseLabel] == string(phase)
}
