package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

func TestHistoryIsNewestFirst(t *testing.T) {
	entries := []remediations.Entry{
		{ID: "cccccc", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}, {Name: "reboot", Number: 2}}, Began: now.Add(-2 * time.Hour), Ended: now.Add(-110 * time.Minute), Cause: "9f2c0e5b6d1a4c33", After: "aaaaaa", Why: "the node is Ready with a new boot ID, its lease is fresh, and the alert is gone"},
		{ID: "bbbbbb", Target: "sidecar-1a2b", Policy: "sidecar-stuck", Outcome: remediations.OutcomeSelfRecovered, Steps: remediations.Attempts{}, Began: now.Add(-26 * time.Hour), Ended: now.Add(-26*time.Hour + 40*time.Second), Request: "policy/sidecar-stuck"},
		{
			ID: "oooooo", Policy: "node-not-ready", Outcome: remediations.OutcomeObserved, Steps: remediations.Attempts{}, Began: now.Add(-30 * time.Hour), Ended: now.Add(-30*time.Hour + 4*time.Minute), Cause: "9f2c0e5b6d1a4c33",
			Why:   "the alert NodeNotReady ended after 9m, and the node is well: reboot:1 at 2026-11-19T15:05:00Z would have been unnecessary",
			Would: &remediations.Would{Step: remediations.Attempt{Name: "reboot", Number: 1}, At: now.Add(-30 * time.Hour), Until: now.Add(-30*time.Hour + 10*time.Minute), IllSince: now.Add(-30*time.Hour - 5*time.Minute), WellAt: now.Add(-30*time.Hour + 4*time.Minute)},
		},
		{ID: "unreadable", Outcome: remediations.OutcomeCancelled, Steps: remediations.Attempts{}, Began: now.Add(-72 * time.Hour), Ended: now.Add(-72 * time.Hour), Why: "{\"v\":9\x1b[2J}"},
	}
	d := newDesk(t, node("node-3", map[string]string{remediations.HistoryKey: historyOf(t, entries...)}))
	for name, args := range map[string][]string{
		"history": nil, "history-wide": {"-o", "wide"}, "history-json": {"-o", "json"}, "history-yaml": {"-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := d.run(append([]string{"history", "node-3"}, args...)...)
			require.Equal(t, cli.ExitOK, code, stderr)
			require.NotContains(t, stdout, "\x1b")
			golden(t, name, stdout)
		})
	}
	_, stdout, _ := d.run("history", "node-3", "-o", "json")
	var h history
	require.NoError(t, json.Unmarshal([]byte(stdout), &h))
	require.Equal(t, history{APIVersion: inspect.APIVersion, Kind: "History", Node: "node-3", Repairs: entries}, h)
}

// TestHistorySaysWhoLedALocation, before and after, whatever became of it.
func TestHistorySaysWhoLedALocation(t *testing.T) {
	move := func(from, to string) remediations.Move {
		return remediations.Move{Location: "east", From: from, To: to, Before: map[string]*string{to: nil}}
	}
	ended := func(id string, o remediations.Outcome, ago time.Duration, why string, moves ...remediations.Move) remediations.Entry {
		e := remediations.Entry{
			ID: id, Target: "leader", Location: "east", Moves: moves, Policy: "mesh-leader-degraded", Outcome: o, Steps: remediations.Attempts{},
			Began: now.Add(-ago - 3*time.Minute), Ended: now.Add(-ago), Cause: "9f2c0e5b6d1a4c33", Why: why,
		}
		for i := range moves {
			e.Steps = append(e.Steps, remediations.Attempt{Name: "promote-leader", Number: i + 1})
		}
		return e
	}
	back := ended("bbbbbb", remediations.OutcomeExhausted, 26*time.Hour, "all attempts were made; the leadership was put back as it was", move("node-3", "node-4"), move("node-4", "node-5"))
	back.PutBack = true
	entries := []remediations.Entry{
		ended("dddddd", remediations.OutcomeExhausted, time.Minute, "promote-leader:1 was not proven to cure the location; the leadership of location east is left with node-4", move("node-3", "node-4")),
		{ID: "aaaaaa", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Began: now.Add(-time.Hour), Ended: now.Add(-50 * time.Minute), Request: "remediation/reboot"},
		ended("cccccc", remediations.OutcomeRecovered, 90*time.Minute, "promote-leader:1 cured it: node-4 leads location east, which answers, and the alert is gone", move("node-3", "node-4")),
		back,
		ended("eeeeee", remediations.OutcomeSuperseded, 48*time.Hour, "location east is led by node-9, and not by node-3"),
	}
	d := newDesk(t, node("node-3", map[string]string{remediations.HistoryKey: historyOf(t, entries...)}))
	for name, args := range map[string][]string{"history-leader": nil, "history-leader-wide": {"-o", "wide"}} {
		code, stdout, stderr := d.run(append([]string{"history", "node-3"}, args...)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		golden(t, name, stdout)
	}
	_, stdout, _ := d.run("history", "node-3", "-o", "json")
	var h history
	require.NoError(t, json.Unmarshal([]byte(stdout), &h))
	require.Equal(t, entries, h.Repairs)
}

func TestANodeWithoutHistory(t *testing.T) {
	d := newDesk(t, node("node-3", nil))
	code, stdout, stderr := d.run("history", "node-3")
	require.Equal(t, cli.ExitOK, code)
	require.Empty(t, stdout)
	require.Equal(t, "No repair of node-3 has ended yet.\n", stderr)

	_, stdout, _ = d.run("history", "node-3", "-o", "json")
	require.JSONEq(t, `{"apiVersion":"drydock.dev/v1alpha1","kind":"History","node":"node-3","repairs":[]}`, stdout)
}

func TestHistoryRefuses(t *testing.T) {
	d := newDesk(t, node("node-3", map[string]string{remediations.HistoryKey: "{"}))
	code, _, stderr := d.run("history", "node-3")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, "error: the history of node-3 cannot be read: the value of its annotation drydock.dev/history has a format that Drydock does not write\n", stderr)

	code, _, stderr = d.run("history", "node-9")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, "error: there is no node \"node-9\" in this cluster\n", stderr)
}
