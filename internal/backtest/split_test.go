package backtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/internal/backtest/history/historytest"
)

// TestATimeThatIsSplitAnywhereGivesTheSameDecisions: from the samples to the report, with what is known at the end of each piece carried
// over to the next one.
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
	dir := r.Blocks(2 * time.Hour)
	rules, err := history.ReadRules("../../rules/NodeNotReady.yaml")
	require.NoError(t, err)
	o := optionsOf(t, dayConfig)
	o.Config.Windows = nil
	replayed := func(t require.TestingT, splits ...time.Time) string {
		past, err := history.OpenTSDB(context.Background(), dir, history.Options{Rules: rules})
		require.NoError(t, err)
		one := New(o, historytest.At(first))
		from := historytest.At(first)
		for _, to := range append(splits, historytest.At(last)) {
			if !from.Before(to) {
				continue
			}
			require.NoError(t, past.Moments(context.Background(), from, to, func(m history.Moment) error { return one.Feed(context.Background(), m) }))
			require.NoError(t, one.Until(context.Background(), to))
			from = to
		}
		one.Finish(historytest.At(last))
		require.NoError(t, past.Close())
		text, err := json.MarshalIndent(one.answer(""), "", " ")
		require.NoError(t, err)
		return string(text)
	}
	whole := replayed(t)
	require.Contains(t, whole, `"reboot:2"`)
	rapid.Check(t, func(t *rapid.T) {
		var splits []time.Time
		for _, ms := range rapid.SliceOfN(rapid.Int64Range(1, int64((last-first)*60_000)-1), 1, 4).Draw(t, "splits") {
			splits = append(splits, historytest.At(first).Add(time.Duration(ms)*time.Millisecond))
		}
		slices.SortFunc(splits, time.Time.Compare)
		require.Equal(t, whole, replayed(t, splits...))
	})
}
