package real

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/alerts"
)

// receiver has characters with a special meaning in a regular expression.
const receiver = "drydock (eu)"

// The labels route and mute select the route of an alert, so that each test has its own.
const config = `
route:
  receiver: drydock (eu)
  group_by: [alertname, node]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 4h
  routes:
  - matchers: [mute="mute"]
    receiver: drydock (eu)
    mute_time_intervals: [always]
  - matchers: [mute="inactive"]
    receiver: drydock (eu)
    active_time_intervals: [long-ago]
  - matchers: [mute="others"]
    receiver: pager
    mute_time_intervals: [always]
    continue: true
  - matchers: [mute="others"]
    receiver: drydock (eu)
  - matchers: [mute="late"]
    receiver: drydock (eu)
    mute_time_intervals: [always]
    group_wait: 1h
receivers:
- name: drydock (eu)
- name: pager
inhibit_rules:
- source_matchers: [alertname="RackDown"]
  target_matchers: [alertname="NodeNotReady"]
  equal: [rack]
time_intervals:
- name: always
  time_intervals:
  - times: [{start_time: "00:00", end_time: "24:00"}]
- name: long-ago
  time_intervals:
  - years: ["1970"]
`

func TestMain(m *testing.M) {
	// The replicas do not gossip: each knows only what it received itself.
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Alertmanagers: 2, AlertmanagerConfig: config})
}

// world has real Alertmanagers, and Drydock's client of all of them.
type world struct {
	t      *testing.T
	urls   []string
	amtool string
	client *alertmanager.Client
}

func newWorld(t *testing.T) *world { return newWorldAt(t, lab.Shared(t).AlertmanagerURLs()...) }

func newWorldAt(t *testing.T, urls ...string) *world {
	built, err := programs.Build(t.Context(), t.Output(), "amtool")
	require.NoError(t, err)
	client, err := alertmanager.New(alertmanager.Options{URLs: urls, Receiver: receiver, Timeout: lab.Patience})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &world{t: t, urls: urls, amtool: built["amtool"], client: client}
}

// alert returns the labels of NodeNotReady about a node, with more labels as name=value.
func alert(node string, more ...string) map[string]string {
	labels := map[string]string{"alertname": "NodeNotReady", "node": node}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		labels[name] = value
	}
	return labels
}

// fire sends alerts to all replicas, as Prometheus does.
func (w *world) fire(fired ...map[string]string) {
	w.t.Helper()
	type posted struct {
		Labels map[string]string `json:"labels"`
		EndsAt time.Time         `json:"endsAt"`
	}
	var all []posted
	for _, labels := range fired {
		all = append(all, posted{labels, time.Now().Add(time.Hour).UTC()})
	}
	body, err := json.Marshal(all)
	require.NoError(w.t, err)
	for _, url := range w.urls {
		req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, url+"/api/v2/alerts", bytes.NewReader(body))
		require.NoError(w.t, err)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		require.NoError(w.t, err)
		require.NoError(w.t, res.Body.Close())
		require.Equal(w.t, http.StatusOK, res.StatusCode)
	}
}

// run runs amtool against one replica, and returns what it prints.
func (w *world) run(replica int, args ...string) string {
	w.t.Helper()
	args = append([]string{"--alertmanager.url=" + w.urls[replica]}, args...)
	out, err := exec.CommandContext(w.t.Context(), w.amtool, args...).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// poll returns all replicas, which must have answered.
func (w *world) poll() []alerts.Replica {
	w.t.Helper()
	replicas := w.client.Look(w.t.Context())
	require.Len(w.t, replicas, len(w.urls))
	for _, r := range replicas {
		require.NoError(w.t, r.Err)
	}
	return replicas
}

// of returns the alert as the replica has it. It fails the test if the replica does not have the
// alert.
func of(t *testing.T, r alerts.Replica, labels map[string]string) alerts.Alert {
	t.Helper()
	key := fingerprint(labels)
	require.Contains(t, r.Alerts, key)
	require.Equal(t, labels, r.Alerts[key].Labels)
	return r.Alerts[key]
}

func fingerprint(labels map[string]string) string {
	set := model.LabelSet{}
	for name, value := range labels {
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	return set.Fingerprint().String()
}

// eventually polls until so returns true about the alert for all replicas.
func (w *world) eventually(labels map[string]string, so func(alerts.Alert) bool) {
	w.t.Helper()
	var last string
	for end := time.Now().Add(lab.Patience); ; {
		agreed := true
		last = ""
		for _, r := range w.poll() {
			a, found := r.Alerts[fingerprint(labels)]
			agreed = agreed && found && so(a)
			last += fmt.Sprintf("%s: %+v\n", r.URL, a)
		}
		if agreed {
			return
		}
		require.True(w.t, time.Now().Before(end), "the replicas still say:\n%s", last)
	}
}
