package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest"
)

const configuration = `
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: observe
receiver: {tokenFile: /token}
alertmanager: {urls: ["http://alertmanager:9093"]}
providers:
  civo: {clusterID: 9c89d8b9-463d-45f2-8928-455eb3f3726a, region: LON1, apiKeyFile: /key}
policies:
- name: node-not-ready
  match: ['remediation="node-not-ready"']
  witness: [{ready: false}]
  plan: [{step: reboot, wait: 10m}]
`

var begin = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

// recorded is a TSDB folder with four hours of ten nodes; n3 is not Ready in the third of them, while an alert with these labels fires.
func recorded(t *testing.T, alert ...string) string {
	t.Helper()
	dir := t.TempDir()
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, (24 * time.Hour).Milliseconds())
	require.NoError(t, err)
	app := w.Appender(t.Context())
	add := func(at time.Time, v float64, name string, more ...string) {
		_, err := app.Append(0, labels.FromStrings(append([]string{"__name__", name, "job", "kube-state-metrics", "instance", "ksm:8080"}, more...)...), at.UnixMilli(), v)
		require.NoError(t, err)
	}
	for at := begin; at.Before(begin.Add(4 * time.Hour)); at = at.Add(30 * time.Second) {
		add(at, 1, "up")
		if hours := at.Sub(begin).Hours(); len(alert) > 0 && hours >= 2 && hours < 3 {
			add(at, 1, "ALERTS", alert...)
		}
		for i := range 10 {
			node := fmt.Sprintf("n%d", i)
			add(at, 1, "kube_node_info", "node", node, "provider_id", "civo://"+node)
			add(at, float64(begin.Add(-24*time.Hour).Unix()), "kube_node_created", "node", node)
			ready := map[string]float64{"true": 1}
			if hours := at.Sub(begin).Hours(); i == 3 && hours >= 2 && hours < 3 {
				ready = map[string]float64{"unknown": 1}
			}
			for _, status := range []string{"true", "false", "unknown"} {
				add(at, ready[status], "kube_node_status_condition", "node", node, "condition", "Ready", "status", status)
			}
		}
	}
	require.NoError(t, app.Commit())
	_, err = w.Flush(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return dir
}

func TestAFolderOfPrometheusIsReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configuration), 0o600))
	dir := recorded(t)
	run := func(more ...string) string {
		var out, errs bytes.Buffer
		args := append([]string{"--config", file, "--tsdb", dir, "--rules", "../../rules/NodeNotReady.yaml", "--since", "3h50m", "--until", "2026-03-04T03:55:00Z"}, more...)
		require.Zero(t, execute(t.Context(), args, &out, &errs), "%s", errs.String())
		return out.String()
	}
	var r backtest.Report
	require.NoError(t, json.Unmarshal([]byte(run("-o", "json")), &r))
	require.Equal(t, 1, r.Runs[0].Totals.Acted, "%+v", r.Runs[0])
	require.Zero(t, r.Runs[0].Totals.Unnecessary)
	require.Equal(t, 1, r.Runs[1].Totals.Shortened)
	require.Equal(t, "n3", r.Runs[0].Repairs[0].Node)
	require.Equal(t, "NodeNotReady", r.Runs[0].Repairs[0].Alert)

	text := run()
	require.Contains(t, text, "Drydock would have repaired 1 faults of nodes")
	require.Equal(t, text, run(), "the same data gives the same bytes")
	require.Contains(t, run("-o", "html"), "<title>Drydock backtest")
}

// TestRecordedAlertsAreReplayed: ALERTS as it was recorded in place of the rules, of which none is evaluated.
func TestRecordedAlertsAreReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configuration), 0o600))
	for name, alerts := range map[string][]string{
		"n3": {"alertname", "Mine", "alertstate", "firing", "node", "n3", "remediation", "node-not-ready"},
		"":   nil,
	} {
		var out, errs bytes.Buffer
		args := []string{"--config", file, "--tsdb", recorded(t, alerts...), "--recorded", "--since", "3h50m", "--until", "2026-03-04T03:55:00Z", "-o", "json"}
		require.Zero(t, execute(t.Context(), args, &out, &errs), "%s", errs.String())
		var r backtest.Report
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
		if name == "" {
			require.Empty(t, r.Runs[0].Repairs, "the control: nothing was recorded, and no rule is evaluated")
			continue
		}
		require.Equal(t, 1, r.Runs[0].Totals.Acted)
		require.Equal(t, name, r.Runs[0].Repairs[0].Node)
		require.Equal(t, "Mine", r.Runs[0].Repairs[0].Alert)
	}
}

func TestTheFormsAreCompleted(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Zero(t, execute(t.Context(), []string{"__complete", "-o", ""}, &out, &errs), "%s", errs.String())
	require.Contains(t, out.String(), "text\njson\nhtml\n:4")
}

func TestBadFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for said, args := range map[string][]string{
		"--config is missing":                     {"--tsdb", "x"},
		"name either --prometheus or --tsdb":      {"--config", "x"},
		`--output "pdf" is not known`:             {"--config", "x", "--tsdb", "x", "-o", "pdf"},
		`--since "soon" is no duration`:           {"--config", "x", "--tsdb", "x", "--since", "soon"},
		`--until "now" is no time in RFC 3339`:    {"--config", "x", "--tsdb", "x", "--until", "now"},
		"--recorded evaluates no rule: leave out": {"--config", "x", "--tsdb", "x", "--recorded", "--rules", "x"},
	} {
		var out, errs bytes.Buffer
		require.NotZero(t, execute(t.Context(), args, &out, &errs))
		require.Contains(t, errs.String(), said)
		require.Empty(t, out.String())
	}
}

func TestItSaysWhichBuildItIs(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--version", "version"} {
		var out, errs bytes.Buffer
		require.Zero(t, execute(t.Context(), []string{arg}, &out, &errs), "%s", errs.String())
		require.Regexp(t, `^drydock backtest version \S+, commit \S+, go go\S+\n$`, out.String())
		require.Empty(t, errs.String())
	}
}
