package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func reported(id string, o remediations.Outcome, ended time.Duration) remediations.Entry {
	e := remediations.Entry{ID: id, Policy: "node-not-ready", Outcome: o, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: now.Add(-ended - 6*time.Minute), Ended: now.Add(-ended), Why: "the node is Ready with a new boot ID"}
	if o == remediations.OutcomeObserved {
		e.Steps, e.Why = remediations.Attempts{}, "would reboot; the node was well before"
		e.Would = &remediations.Would{Step: remediations.Attempt{Name: "reboot", Number: 1}, At: e.Began.Add(time.Minute), Until: e.Ended.Add(time.Minute), IllSince: e.Began, WellAt: e.Ended}
	}
	return e
}

func reportDesk(t *testing.T) *desk {
	return newDesk(t, ledgerOf(calmLedger()), node("node-9", nil),
		inPool(node("node-3", map[string]string{remediations.HistoryKey: historyOf(t, reported("cccccc", remediations.OutcomeRecovered, 2*time.Hour), reported("bbbbbb", remediations.OutcomeRecovered, 50*time.Hour))}), "gpu"),
		node("node-4", map[string]string{remediations.HistoryKey: historyOf(t, reported("dddddd", remediations.OutcomeObserved, 30*time.Hour))}),
		under("node-5", record("eeeeee", remediations.PhasePending, held(remediations.ReasonSilenced, "silence 4711 of ada: disk swap", time.Time{}))))
}

func (d *desk) report(args ...string) *report.Report {
	d.t.Helper()
	code, stdout, stderr := d.run(append([]string{"report", "-o", "json"}, args...)...)
	require.Equal(d.t, cli.ExitOK, code, stderr)
	var r report.Report
	require.NoError(d.t, json.Unmarshal([]byte(stdout), &r))
	return &r
}

func TestReport(t *testing.T) {
	d := reportDesk(t)
	code, stdout, stderr := d.run("report")
	require.Equal(t, cli.ExitOK, code, stderr)
	golden(t, "report", stdout)
	code, stdout, stderr = d.run("report", "-o", "html")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "<!DOCTYPE html>")
	require.Contains(t, stdout, "node-4")

	r := d.report()
	require.Equal(t, 2, r.Total.Repairs)
	require.Equal(t, 1, r.Total.WouldBe)
	require.Equal(t, 4, r.Nodes)
	require.Equal(t, 1, d.report("--since", "36h").Total.Repairs, "the other ended before")
	require.Equal(t, 1, d.report("node-4").Total.WouldBe)
	require.Zero(t, d.report("node-4").Total.Repairs)
	require.Equal(t, 2, d.report("-l", "pool=gpu").Total.Repairs)
	require.Equal(t, 1, d.report("-l", "pool=gpu").Nodes)
}

func TestReportRefuses(t *testing.T) {
	d := reportDesk(t)
	for line, said := range map[string]string{
		"report --since yesterday":                             `--since is "yesterday"; write how far the report goes back, for example 7d, 36h or 1h30m`,
		"report --since -7d":                                   `--since is "-7d"`,
		"report --since 0s":                                    `--since is "0s"`,
		"report -o yaml":                                       `--output is "yaml"; write text, json, html`,
		"report node-3 -l pool=gpu":                            "nodes and -l were both given; give one of them",
		"report -l pool=(":                                     `--selector "pool=(" is not a label selector`,
		"report --prometheus localhost:9090":                   "--prometheus is not the URL of a Prometheus; write a URL, for example http://localhost:9090",
		"report --prometheus-label cluster=a":                  "--prometheus-label needs --prometheus",
		"report --prometheus http://p --prometheus-label prod": `--prometheus-label is "prod"; write LABEL=VALUE, for example cluster=prod-1`,
	} {
		code, _, stderr := d.run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, stderr, said, line)
	}
	code, _, stderr := d.run("report", "node-77")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, "error: there is no node \"node-77\" in this cluster\n", stderr)
	code, _, stderr = newDesk(t, node("node-1", nil)).run("report")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "no Drydock was found")
}

// TestReportSaysWhatItCouldNotRead, and continues with the rest.
func TestReportSaysWhatItCouldNotRead(t *testing.T) {
	d := newDesk(t, node("node-3", map[string]string{remediations.HistoryKey: historyOf(t, reported("cccccc", remediations.OutcomeRecovered, time.Hour))}))
	gone := httptest.NewServer(nil)
	gone.Close()
	r := d.report("--prometheus", gone.URL)
	require.Equal(t, 1, r.Total.Repairs)
	said := strings.Join(r.Unsaid, "\n")
	_, stdout, _ := d.run("report")
	require.Contains(t, stdout, "Unknown: the ledger was not read.")
	require.Contains(t, said, "The ledger was not read")
	require.Contains(t, said, "Prometheus was not read: ")
}

// TestReportAsksPrometheus over the form of its API, for one cluster's series alone.
func TestReportAsksPrometheus(t *testing.T) {
	clusters := []string{"prod-1"}
	var asked, steps []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		asked = append(asked, query)
		result, kind := []any{}, "matrix"
		series := func(labels map[string]string, from, n int, value string) {
			values := [][]any{}
			for i := range n {
				values = append(values, []any{now.Add(-time.Hour).Add(time.Duration(from+i) * 30 * time.Second).Unix(), value})
			}
			result = append(result, map[string]any{"metric": labels, "values": values})
		}
		switch {
		case strings.Contains(query, "group by (cluster)"):
			kind = "vector"
			for _, c := range clusters {
				result = append(result, map[string]any{"metric": map[string]string{"cluster": c}, "value": []any{now.Unix(), "1"}})
			}
		case strings.Contains(query, "drydock_holds"):
			series(map[string]string{"policy": "node-not-ready", "reason": "AtLimit"}, 10, 4, "2")
		case strings.Contains(query, "drydock_breaker_state"):
			series(map[string]string{"scope": "cluster"}, 20, 3, "1")
		case strings.Contains(query, "drydock_leader"):
			series(map[string]string{}, 0, 121, "1")
			steps = append(steps, r.FormValue("step"))
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}})
	}))
	t.Cleanup(s.Close)
	d := reportDesk(t)
	r := d.report("--since", "1h", "--prometheus", s.URL, "--prometheus-label", "cluster=prod-1")
	require.NotNil(t, r.Measured, r.Unsaid)
	require.Equal(t, []report.Hold{{Policy: "node-not-ready", Reason: remediations.ReasonAtLimit, Seconds: 120, Most: 2, Source: report.SourcePrometheus}}, r.Holds)
	require.Equal(t, []report.Breaker{{Scope: "cluster", Openings: 1, Seconds: 90, State: ledger.BreakerClosed, Source: report.SourcePrometheus}}, r.Breakers)
	most := 1
	require.Equal(t, &report.Measured{StepSeconds: 30, InFlight: &most}, r.Measured)
	for _, q := range asked {
		require.Equal(t, strings.Count(q, "drydock_"), strings.Count(q, `cluster="prod-1"`), q)
	}

	require.Equal(t, []string{"30"}, steps)

	clusters = append(clusters, "prod-2")
	r = d.report("--since", "1h", "--prometheus", s.URL)
	require.Nil(t, r.Measured, "nobody counts two clusters as one")
	require.Contains(t, strings.Join(r.Unsaid, "\n"), `several clusters (label cluster: "prod-1", "prod-2"); name this cluster with --prometheus-label cluster=NAME`)
}

func TestTheReportReadsOnlySeriesThatPrometheusHas(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{time.Hour: 30 * time.Second, 7 * 24 * time.Hour: time.Minute, 90 * 24 * time.Hour: 12 * time.Minute} {
		require.Equal(t, want, step(length))
		require.LessOrEqual(t, int(length/step(length)), 11000, strconv.Itoa(int(length)))
	}
}

func TestReportIsCompleted(t *testing.T) {
	d := reportDesk(t)
	require.ElementsMatch(t, []string{"node-3", "node-4", "node-5", "node-9"}, d.completions("report "))
	require.ElementsMatch(t, []string{"text", "json", "html"}, d.completions("report -o "))
	require.Contains(t, d.completions("report --since "), "7d")
}
