package dashboard

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/remediations"
)

// theReportReadsTheSeries: `kubectl drydock report` reads from Prometheus what no Node and no
// ledger keeps. If that Prometheus is not reachable, it says so, and reports the rest.
func theReportReadsTheSeries(t *testing.T, l *lab.Lab) {
	plugin, err := l.PluginProgram(t.Context())
	require.NoError(t, err)
	run := func(more ...string) string {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), plugin, append([]string{"--kubeconfig", l.AdminKubeconfig(), "report", "--since", "1h"}, more...)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Run(), "%s", errs.String())
		return out.String()
	}
	read := func(more ...string) (r report.Report) {
		require.NoError(t, json.Unmarshal([]byte(run(append(more, "-o", "json")...)), &r))
		return r
	}
	held := func(r report.Report) *report.Hold {
		i := slices.IndexFunc(r.Holds, func(h report.Hold) bool { return h.Reason == remediations.ReasonPaused })
		if i < 0 {
			return nil
		}
		return &r.Holds[i]
	}
	named := []string{"--prometheus", l.PrometheusURL()}

	// node-1 was not Ready and is paused. The samples are 30 s apart, so the pause was long enough
	// when two samples show it.
	await(t, "the hold to be measured", func() bool {
		h := held(read(named...))
		return h != nil && h.Source == report.SourcePrometheus && h.Seconds >= 60
	})
	now := held(read())
	require.NotNil(t, now, "the control: as long as it holds, the Node says so")
	require.Equal(t, report.SourceRecords, now.Source)

	require.NoError(t, l.SetCondition(t.Context(), "node-1", corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"))
	await(t, "the hold to be over", func() bool { return held(read()) == nil })
	with := read(named...)
	require.NotNil(t, held(with), "only Prometheus knows of it now")
	require.Equal(t, "node-not-ready", held(with).Policy)
	require.Equal(t, 1, held(with).Most)
	require.NotNil(t, with.Measured)
	require.EqualValues(t, 30, with.Measured.StepSeconds)
	require.Contains(t, strings.Join(with.Unsaid, "\n"), "Prometheus has no sample of a leading Drydock for ", "an hour ago there was none")
	for _, form := range []string{"text", "html"} {
		require.Contains(t, run(append(named, "-o", form)...), string(remediations.ReasonPaused), form)
		require.NotContains(t, run("-o", form), string(remediations.ReasonPaused), form)
	}

	n, err := l.Client().CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	repairs := len(remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]))
	away := []string{"--prometheus", "http://127.0.0.1:1"}
	for name, args := range map[string][]string{"read": named, "away": away, "not named": nil} {
		r := read(append(args, "node-0")...)
		require.Equal(t, repairs, r.Total.Repairs, name)
		require.Equal(t, name == "read", r.Measured != nil, name)
		unsaid := strings.Join(r.Unsaid, "\n")
		require.Equal(t, name == "away", strings.Contains(unsaid, "Prometheus was not read: "), unsaid)
		require.Equal(t, name != "read", strings.Contains(unsaid, "With --prometheus URL, the report has all of them."), unsaid)
	}
	for _, form := range []string{"text", "html"} {
		said := strings.Join(strings.Fields(run(append(away, "-o", form)...)), " ")
		require.Contains(t, said, "Prometheus was not read: ", form)
		require.Contains(t, said, "connection refused", form)
	}
}
