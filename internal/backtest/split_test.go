package backtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/internal/backtest/history/historytest"
)

// TestATimeThatIsSplitAnywhereGivesTheSameDecisions: from the answers to the report, by processes
// that share nothing but the file with the state. Each process continues where the one before it
// stopped.
func TestATimeThatIsSplitAnywhereGivesTheSameDecisions(t *testing.T) {
	t.Parallel()
	const first, last = 30.0, 190.0
	r := historytest.New(t)
	historytest.Every(0, last+10, func(when time.Time, minutes float64) {
		if minutes >= 155 && minutes < 170 {
			return // a gap
		}
		var machines []historytest.Machine
		for i := range 10 {
			m := historytest.Machine{Name: fmt.Sprintf("n%d", i)}
			switch {
			case i == 1 && minutes >= 35 && minutes < 48, i == 2 && minutes >= 60 && minutes < 120, i > 6 && minutes >= 130 && minutes < 150:
				m.Ready = "unknown"
			case i == 3 && int(minutes)%20 < 8:
				m.Ready = "false"
			}
			machines = append(machines, m)
		}
		r.Scrape(when, "a", historytest.KubeStateMetrics("a", machines...))
	})
	url := r.Serve()
	rules, err := history.ReadRules("../../rules/NodeNotReady.yaml")
	require.NoError(t, err)
	o := optionsOf(t, dayConfig)
	o.Config.Windows = nil
	reported := func(t require.TestingT, file string, until ...time.Time) string {
		var found *Report
		for _, to := range until {
			past, err := history.OpenPrometheus(url, nil, history.Options{Rules: rules, Interval: 30 * time.Second, State: file})
			require.NoError(t, err)
			found, err = Backtest(context.Background(), past, historytest.At(first), to, Named{"", o})
			require.NoError(t, err)
			require.NoError(t, past.Close())
		}
		var text strings.Builder
		require.NoError(t, found.JSON(&text))
		return text.String()
	}
	files := t.TempDir()
	whole := reported(t, filepath.Join(files, "whole"), historytest.At(last))
	require.Contains(t, whole, `"reboot:2"`)
	require.Contains(t, whole, `"from": "2026-10-01T02:39:30Z"`, "the gap")
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		var splits []time.Time
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) // rapid alone likes the edges too much
		for range 1 + random.IntN(3) {
			splits = append(splits, historytest.At(first+random.Float64()*(last-first)).Truncate(time.Millisecond))
		}
		slices.SortFunc(splits, time.Time.Compare)
		runs++
		require.Equal(t, whole, reported(t, filepath.Join(files, strconv.Itoa(runs)), append(splits, historytest.At(last))...))
	})
}
