package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

func TestHistoryIsNewestFirst(t *testing.T) {
	entries := []remediations.Entry{
		{ID: "cccccc", Policy: "node-not-ready", Outcome: remediations.Recovered, Steps: []string{"reboot:1", "reboot:2"}, Began: now.Add(-2 * time.Hour), Ended: now.Add(-110 * time.Minute), Cause: "9f2c0e5b6d1a4c33", Why: "the node is Ready with a new boot ID, its lease is fresh, and the alert is gone"},
		{ID: "bbbbbb", Target: "sidecar-1a2b", Policy: "sidecar-stuck", Outcome: remediations.SelfRecovered, Steps: []string{}, Began: now.Add(-26 * time.Hour), Ended: now.Add(-26*time.Hour + 40*time.Second), Request: "policy/sidecar-stuck"},
		{ID: "unreadable", Outcome: remediations.Cancelled, Steps: []string{}, Began: now.Add(-72 * time.Hour), Ended: now.Add(-72 * time.Hour), Why: "{\"v\":9\x1b[2J}"},
	}
	d := newDesk(t, node("node-3", map[string]string{remediations.HistoryKey: historyOf(t, entries...)}))
	for name, args := range map[string][]string{
		"history": nil, "history-wide": {"-o", "wide"}, "history-json": {"-o", "json"}, "history-yaml": {"-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := d.run(append([]string{"history", "node-3"}, args...)...)
			require.Equal(t, exitOK, code, stderr)
			require.NotContains(t, stdout, "\x1b")
			golden(t, name, stdout)
		})
	}
	_, stdout, _ := d.run("history", "node-3", "-o", "json")
	var h history
	require.NoError(t, json.Unmarshal([]byte(stdout), &h))
	require.Equal(t, history{APIVersion: apiVersion, Kind: "History", Node: "node-3", Repairs: entries}, h)
}

func TestANodeWithoutHistory(t *testing.T) {
	d := newDesk(t, node("node-3", nil))
	code, stdout, stderr := d.run("history", "node-3")
	require.Equal(t, exitOK, code)
	require.Empty(t, stdout)
	require.Equal(t, "No repair of node-3 has ended yet.\n", stderr)

	_, stdout, _ = d.run("history", "node-3", "-o", "json")
	require.JSONEq(t, `{"apiVersion":"drydock.dev/v1alpha1","kind":"History","node":"node-3","repairs":[]}`, stdout)
}

func TestHistoryRefuses(t *testing.T) {
	d := newDesk(t, node("node-3", map[string]string{remediations.HistoryKey: "{"}))
	code, _, stderr := d.run("history", "node-3")
	require.Equal(t, exitRefused, code)
	require.Equal(t, "error: the history of node-3 cannot be read: its annotation drydock.dev/history is not what Drydock writes\n", stderr)

	code, _, stderr = d.run("history", "node-9")
	require.Equal(t, exitRefused, code)
	require.Equal(t, "error: there is no node \"node-9\" in this cluster\n", stderr)
}
