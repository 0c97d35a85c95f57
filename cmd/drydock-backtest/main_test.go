package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest"
	"drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/cli"
)

// until is when the past of these tests ends.
var until = time.Date(2026, 3, 4, 4, 0, 0, 0, time.UTC)

func TestAFolderOfPrometheusIsReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(historytest.Config), 0o600))
	dir := historytest.Outage(t, until)
	run := func(more ...string) string {
		var out, errs bytes.Buffer
		args := append([]string{"--config", file, "--tsdb", dir, "--rules", "../../rules/NodeNotReady.yaml", "--since", "5h50m", "--until", "2026-03-04T03:55:00Z"}, more...)
		require.Zero(t, execute(t.Context(), args, &out, &errs), "%s", errs.String())
		require.Empty(t, errs.String(), "no progress, where nobody looks at a terminal")
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
	require.NoError(t, os.WriteFile(file, []byte(historytest.Config), 0o600))
	for name, alerts := range map[string][]string{
		"n3": {`ALERTS{alertname="Mine",alertstate="firing",node="n3",remediation="node-not-ready"}`},
		"":   nil,
	} {
		var out, errs bytes.Buffer
		args := []string{"--config", file, "--tsdb", historytest.Outage(t, until, alerts...), "--recorded", "--since", "5h50m", "--until", "2026-03-04T03:55:00Z", "-o", "json"}
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
		`--resend-delay "often" is no duration`:   {"--config", "x", "--tsdb", "x", "--resend-delay", "often"},
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

// TestConfigurationsOfTwoClustersAreNotCompared: there is one past, and it is of one cluster.
func TestConfigurationsOfTwoClustersAreNotCompared(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), historytest.Outage(t, until)
	write := func(name, cluster string) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(historytest.Config+"cluster: {label: cluster, value: "+cluster+"}\n"), 0o600))
		return file
	}
	first := write("first", "a")
	for cluster, refused := range map[string]bool{"a": false, "b": true} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), []string{"--config", first, "--compare", write("second-"+cluster, cluster), "--tsdb", dir, "--since", "1h", "--until", "2026-03-04T03:55:00Z"}, &out, &errs)
		require.Equal(t, refused, code == cli.ExitUsage, errs.String())
		require.Equal(t, refused, strings.Contains(errs.String(), "--config and --compare are for different clusters"), errs.String())
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
