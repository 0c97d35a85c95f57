package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest"
	"drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/cli"
)

// until is when the past of these tests ends.
var until = time.Date(2026, 3, 4, 4, 0, 0, 0, time.UTC)

func TestAPrometheusIsReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(historytest.Config), 0o600))
	url := historytest.Outage(t, until).Serve()
	run := func(more ...string) string {
		var out, errs bytes.Buffer
		args := append([]string{"--config", file, "--prometheus", url, "--rules", "../../rules/NodeNotReady.yaml", "--since", "5h50m", "--until", "2026-03-04T03:55:00Z"}, more...)
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
	require.Contains(t, text, "Drydock would have repaired 1 fault of nodes")
	require.Equal(t, text, run(), "the same data gives the same bytes")
	require.Contains(t, run("-o", "html"), "<title>Drydock backtest")
}

// TestRecordedAlertsAreReplayed: the recorded ALERTS are used, and no rule is evaluated.
func TestRecordedAlertsAreReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(historytest.Config), 0o600))
	for name, alerts := range map[string][]string{
		"n3": {`ALERTS{alertname="Mine",alertstate="firing",node="n3",remediation="node-not-ready"}`},
		"":   nil,
	} {
		var out, errs bytes.Buffer
		args := []string{"--config", file, "--prometheus", historytest.Outage(t, until, alerts...).Serve(), "--recorded", "--since", "5h50m", "--until", "2026-03-04T03:55:00Z", "-o", "json"}
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
		"--config is missing":                                {"--prometheus", "x"},
		"--prometheus is missing":                            {"--config", "x"},
		"--tsdb no longer exists: start a Prometheus on the": {"--config", "x", "--tsdb", "x"},
		`--output is "pdf"; write text`:                      {"--config", "x", "--prometheus", "x", "-o", "pdf"},
		`--resend-delay "often" is not a duration`:           {"--config", "x", "--prometheus", "x", "--resend-delay", "often"},
		`--since "soon" is not a duration`:                   {"--config", "x", "--prometheus", "x", "--since", "soon"},
		`--until "now" is not a time in RFC 3339`:            {"--config", "x", "--prometheus", "x", "--until", "now"},
		"--recorded evaluates no rule: remove":               {"--config", "x", "--prometheus", "x", "--recorded", "--rules", "x"},
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
	folder, url := t.TempDir(), historytest.Outage(t, until).Serve()
	write := func(name, cluster string) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(historytest.Config+"cluster: {label: cluster, value: "+cluster+"}\n"), 0o600))
		return file
	}
	first := write("first", "a")
	for cluster, refused := range map[string]bool{"a": false, "b": true} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), []string{"--config", first, "--compare", write("second-"+cluster, cluster), "--prometheus", url, "--since", "1h", "--until", "2026-03-04T03:55:00Z"}, &out, &errs)
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

// TestTheReportNamesTimeWithoutData: and not as a time without a fault.
func TestTheReportNamesTimeWithoutData(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(historytest.Config), 0o600))
	url := historytest.Outage(t, until).Serve()
	for end, said := range map[string]string{
		"2026-03-05T12:00:00Z": "The server has no data of kube-state-metrics for any of this time. The report cannot say",
		"2026-03-04T05:00:00Z": "The server has no data of kube-state-metrics for 55m of this time, so the report says nothing about that.",
		"2026-03-04T03:50:00Z": "",
	} {
		var out, errs bytes.Buffer
		require.Zero(t, execute(t.Context(), []string{"--config", file, "--prometheus", url, "--rules", "../../rules/NodeNotReady.yaml", "--since", "5h", "--until", end}, &out, &errs), "%s", errs.String())
		require.Equal(t, said == "", !strings.Contains(out.String(), "The server has no data"), out.String())
		require.Contains(t, strings.Join(strings.Fields(out.String()), " "), said)
	}
}

// TestHTTPSettingsAreUsed: those of Prometheus' own files, and SigV4.
func TestHTTPSettingsAreUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	config := write("config.yaml", historytest.Config)
	var token atomic.Value
	url := historytest.Outage(t, until).ServeWithin(historytest.Limits{Before: func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
		token.Store(r.Header.Get("Authorization"))
		return false
	}})
	write("token", "s3cret")
	run := func(settings string) (int, string) {
		var out, errs bytes.Buffer
		code := execute(t.Context(), []string{
			"--config", config, "--prometheus", url, "--http-config", write("http.yaml", settings), "--rules", "../../rules/NodeNotReady.yaml", "--since", "1h", "--until", "2026-03-04T03:50:00Z",
		}, &out, &errs)
		return code, errs.String()
	}
	for settings, sent := range map[string]string{
		"authorization: {credentials_file: token}":                           "Bearer s3cret",
		"basic_auth: {username: ops, password_file: token}":                  "Basic b3BzOnMzY3JldA==",
		"sigv4: {region: eu-west-1, access_key: AKIDEXAMPLE, secret_key: k}": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/",
	} {
		code, errs := run(settings)
		require.Zero(t, code, errs)
		require.Contains(t, token.Load(), sent)
	}
	for settings, said := range map[string]string{
		"authorisation: {}": "authorisation",
		"sigv4: {region: eu-west-1, access_key: a, secret_key: k}\nbasic_auth: {username: ops}": "remove one of them",
	} {
		code, errs := run(settings)
		require.NotZero(t, code)
		require.Contains(t, errs, said)
	}
}
