package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history/historytest"
)

func TestAStateIsCarriedFromOneRunToTheNext(t *testing.T) {
	t.Parallel()
	dir, files := historytest.Outage(t, until), t.TempDir()
	file := func(name string) string { return filepath.Join(files, name) }
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(file(name), []byte(text), 0o600))
	}
	write("config", historytest.Config)
	run := func(end string, more ...string) (int, string, string) {
		var out, errs bytes.Buffer
		args := []string{"--config", file("config"), "--tsdb", dir, "--rules", "../../rules/NodeNotReady.yaml", "--until", "2026-03-04T" + end + "Z", "-o", "json"}
		code := execute(t.Context(), append(args, more...), &out, &errs)
		return code, out.String(), errs.String()
	}
	_, whole, _ := run("03:55:00", "--since", "5h50m")
	require.Contains(t, whole, `"node": "n3"`)
	for _, end := range []string{"00:02:00", "00:20:00", "01:03:00", "03:55:00"} {
		code, _, said := run(end, "--since", "117m", "--state", file("state"))
		require.Zero(t, code, said)
	}
	_, carried, _ := run("03:55:00", "--since", "1h", "--state", file("state"))
	require.Equal(t, whole, carried, "the state says when the time begins, and a report of the same time can be printed again")

	write("rules.yaml", "groups: [{name: a, rules: [{alert: A, expr: vector(1)}]}]")
	refused := map[string][]string{
		"another configuration to compare with:": {"--compare", file("config")},
		"another set of rules:":                  {"--rules", file("rules.yaml")},
		"another configuration of Alertmanager:": {"--alertmanager", "../../deploy/alertmanager.yaml"},
		"another configuration:":                 nil,
	}
	for said, more := range refused {
		if more == nil {
			write("config", strings.Replace(historytest.Config, "wait: 10m", "wait: 11m", 1))
		}
		code, out, errs := run("03:56:00", append(more, "--state", file("state"))...)
		write("config", historytest.Config)
		require.NotZero(t, code)
		require.Contains(t, errs, said)
		require.Empty(t, out)
	}
}
