package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history/historytest"
)

// TestAStateIsUsedAgain: the report is the same, and the server is asked less.
func TestAStateIsUsedAgain(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	config := filepath.Join(files, "config")
	require.NoError(t, os.WriteFile(config, []byte(historytest.Config), 0o600))
	var asked atomic.Int64
	url := historytest.Outage(t, until.Add(24*60*60e9)).ServeWithin(historytest.Limits{Before: func(http.ResponseWriter, *http.Request, int64) bool {
		asked.Add(1)
		return false
	}})
	run := func(more ...string) (string, int64) {
		before := asked.Load()
		var out, errs bytes.Buffer
		args := []string{"--config", config, "--prometheus", url, "--rules", "../../rules/NodeNotReady.yaml", "--since", "23h", "--until", "2026-03-05T03:55:00Z", "-o", "json"}
		require.Zero(t, execute(t.Context(), append(args, more...), &out, &errs), "%s", errs.String())
		return out.String(), asked.Load() - before
	}
	whole, _ := run()
	require.Contains(t, whole, `"node": "n3"`)
	first, all := run("--state", filepath.Join(files, "state"))
	second, less := run("--state", filepath.Join(files, "state"))
	require.Equal(t, whole, first)
	require.Equal(t, whole, second)
	require.Less(t, less, all)
}
