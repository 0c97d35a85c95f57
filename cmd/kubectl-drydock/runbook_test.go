package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

// TestTheRunbookOfAnAlertIsPrinted as it stands in rules/runbooks, without a question to the
// cluster.
func TestTheRunbookOfAnAlertIsPrinted(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "rules", "runbooks", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	d := newDesk(t)
	var names []string
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		names = append(names, name)
		want, err := os.ReadFile(page)
		require.NoError(t, err)
		code, stdout, stderr := d.run("runbook", name)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Equal(t, string(want), stdout)
	}
	code, stdout, stderr := d.run("runbook")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, names, strings.Fields(stdout))
	require.Equal(t, names, d.completions("runbook "))
	require.Empty(t, d.cluster.Actions())
}

func TestAnAlertWithoutARunbookIsAnsweredWithSimilarNames(t *testing.T) {
	for typed, want := range map[string]string{
		"NodeNotRedy":   "did you mean NodeNotReady?",
		"nodenotready":  "did you mean NodeNotReady?",
		"gpu":           "did you mean NodeGPUCountWrong, NodeGPUFault?",
		"TargetDown":    "`kubectl drydock runbook` lists the alerts that have one",
		"../rules.go":   "`kubectl drydock runbook` lists the alerts that have one",
		"":              "`kubectl drydock runbook` lists the alerts that have one",
		"APIServerDown": "",
	} {
		code, stdout, stderr := newDesk(t).run("runbook", typed)
		if want == "" { // the control
			require.Equal(t, cli.ExitOK, code)
			continue
		}
		require.Equal(t, cli.ExitUsage, code, typed)
		require.Empty(t, stdout)
		require.Equal(t, "error: there is no runbook for the alert \""+typed+"\"; "+want, strings.Split(stderr, "\n")[0])
	}
}
