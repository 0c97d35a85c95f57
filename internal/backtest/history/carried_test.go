package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// stateful are rules that remember: alerts that wait and that are kept, what rules made, also long ago, and a rule that fails for a time.
const stateful = `
groups:
- name: long
  interval: 30s
  rules:
  - {alert: Waits, expr: 'kube_node_status_condition{condition="Ready",status="true"} == 0', for: 10m, keep_firing_for: 7m, labels: {of: '{{ $labels.node }}'}}
  - {alert: Always, expr: vector(1), annotations: {n: '{{ with query "count(kube_node_info)" }}{{ . | first | value }}{{ end }}'}}
  - {alert: Counts, expr: count(kube_node_info), for: 3m, labels: {n: '{{ $value }}'}}
  - {alert: Asks, expr: vector(1), labels: {others: '{{ if query "absent" }}some{{ else }}none{{ end }}'}}
- name: made
  interval: 1m
  rules:
  - {alert: Early, expr: 'node:ready == 0'} # a round behind what it reads
  - {alert: Flaps, expr: 'changes(node:ready[100m]) > 2'}
  - {record: 'node:ready', expr: 'kube_node_status_condition{condition="Ready",status="true"}'}
  - {alert: Ends, expr: 'node:ready == 0'}
- name: reads
  interval: 45s
  rules:
  - {alert: Follows, expr: 'count by (of) (ALERTS{alertname="Waits"}) > 0', for: 2m}
  - {alert: Twice, expr: 'label_replace(kube_node_info{node="three"}, "node", "", "", "") and on () (count(kube_node_info) > 2) or label_replace(kube_node_created, "node", "", "", "") and on () (count(kube_node_info) > 2)'}
  - {alert: Role, expr: 'kube_node_role > 1'}
- {name: rare, interval: 50m, rules: [{alert: Rare, expr: vector(1), for: 100m}]}
`

// eventful is a day in which kube-state-metrics is down twice, others of it disagree and take its place, and a metric goes.
func eventful(t testing.TB) *Recording {
	r := New(t)
	between := func(minutes, from, until float64) bool { return minutes >= from && minutes < until }
	Every(0, 240, func(when time.Time, minutes float64) {
		scrape := func(target string, up bool, machines ...Machine) {
			var shows map[string]float64
			if up {
				shows = KubeStateMetrics(target, machines...)
			}
			maps.DeleteFunc(shows, func(name string, _ float64) bool { return minutes > 60 && strings.HasPrefix(name, "kube_node_role") })
			r.Scrape(when, target, shows)
		}
		scrape("a", minutes < 165 && !between(minutes, 100, 110) && !between(minutes, 150, 155), machinesAt(minutes)...)
		scrape("b", between(minutes, 130, 180), Machine{Name: "one", Version: "v1.35.0"})
		scrape("c", minutes >= 166, machinesAt(minutes)[:2]...)
	})
	return r
}

// joined makes one of gaps that follow each other: where the time is split, there is one on either side.
func joined(all []history.Moment) (out []history.Moment) {
	for _, m := range all {
		if last := len(out) - 1; last >= 0 && m.Gap != nil && out[last].Gap != nil && out[last].Gap.Until.Equal(m.At) {
			gap := *m.Gap
			out[last].Gap = &gap
			continue
		}
		out = append(out, m)
	}
	return out
}

// carried reads until each of these times in turn, as so many processes would that share nothing but the file.
func carried(t require.TestingT, dir, file string, o history.Options, from time.Time, until ...time.Time) (out []history.Moment, skipped []history.Skip) {
	for _, to := range until {
		past, err := history.OpenTSDB(context.Background(), dir, o)
		require.NoError(t, err)
		c, err := history.Carry(past, file, map[string]string{"configuration": "same"}, from, to)
		require.NoError(t, err)
		require.True(t, c.From().Equal(from))
		out = nil
		require.NoError(t, c.Moments(context.Background(), c.From(), to, func(m history.Moment) error {
			out = append(out, m)
			return nil
		}))
		skipped = c.Skipped()
		require.NoError(t, c.Close())
	}
	return joined(out), skipped
}

// TestAReadingGoesOnInAnotherProcess: wherever the time is split, what is read with the state of the process before is what one process
// reads of all the time.
func TestAReadingGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	const first, last = 30.0, 230.0
	dir, files := eventful(t).Blocks(2*time.Hour), t.TempDir()
	for name, o := range map[string]history.Options{"rules": {Rules: rulesOf(t, stateful)}, "recorded": {Recorded: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, skipped := carried(t, dir, filepath.Join(files, name+"-whole"), o, At(first), At(last))
			whole := text(t, all)
			if !o.Recorded {
				for _, of := range []string{"Waits", "Always", "Counts", "Asks", "Early", "Flaps", "Ends", "Follows", "Rare"} {
					require.Contains(t, whole, `"alertname": "`+of+`"`)
				}
				require.True(t, slices.ContainsFunc(skipped, func(s history.Skip) bool { return s.What == "rule Twice" }), "%v", skipped)
			}
			runs := 0
			check := func(r require.TestingT, splits ...float64) {
				slices.Sort(splits)
				var until []time.Time
				for _, minutes := range append(splits, last) {
					until = append(until, At(minutes).Truncate(time.Millisecond))
				}
				runs++
				got, missed := carried(r, dir, filepath.Join(files, fmt.Sprint(name, runs)), o, At(first), until...)
				require.Equal(r, whole, text(t, got), "split at %v", splits)
				require.Equal(r, skipped, missed)
			}
			check(t, 101.5)    // after the evaluation with which what a rule made ends
			check(t, 105)      // in a gap
			check(t, 133)      // before a Node changes about which two disagree
			check(t, 140, 152) // while two disagree, and while one of them is down
			check(t, 168)      // before a Node counts as deleted that its kube-state-metrics' successor does not show
			rapid.Check(t, func(r *rapid.T) {
				random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0)) // rapid alone likes the edges too much
				var splits []float64
				for range 1 + random.IntN(3) {
					splits = append(splits, first+random.Float64()*(last-first))
				}
				check(r, splits...)
			})
		})
	}
}

// TestAGroupBeforeItsFirstEvaluationIsNotEvaluatedSooner: a process that goes on makes nothing that the one before it would make later.
func TestAGroupBeforeItsFirstEvaluationIsNotEvaluatedSooner(t *testing.T) {
	t.Parallel()
	dir, files := day(t, 3).Blocks(2*time.Hour), t.TempDir()
	o := history.Options{Rules: rulesOf(t, `
groups:
- {name: slow, interval: 50m, rules: [{record: slow, expr: vector(1)}]}
- {name: reads, interval: 30s, rules: [{alert: Slow, expr: 'last_over_time(slow[2h]) > 0'}]}
`)}
	whole, _ := carried(t, dir, filepath.Join(files, "whole"), o, At(60), At(170))
	first := slices.IndexFunc(whole, func(m history.Moment) bool { return len(m.Alerts) > 0 })
	require.Positive(t, first, "the group is evaluated for the first time within the time")
	split := whole[first].Alerts[0].StartsAt.Add(-5 * time.Minute).Truncate(time.Millisecond)
	require.True(t, split.After(At(60)))
	got, _ := carried(t, dir, filepath.Join(files, "split"), o, At(60), split, At(170))
	require.Equal(t, text(t, whole), text(t, got))
}

// TestAStateThatCannotHoldARuleIsRefused: what a rule makes or says must be the same in the next process.
func TestAStateThatCannotHoldARuleIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("native histograms", func(t *testing.T) {
		t.Parallel()
		dir := day(t, 3).Blocks(2 * time.Hour)
		writer, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, (24 * time.Hour).Milliseconds())
		require.NoError(t, err)
		app := writer.Appender(t.Context())
		Every(0, 60, func(when time.Time, _ float64) {
			_, err := app.AppendHistogram(0, labels.FromStrings("__name__", "took"), when.UnixMilli(), tsdbutil.GenerateTestHistogram(1), nil)
			require.NoError(t, err)
		})
		require.NoError(t, app.Commit())
		_, err = writer.Flush(t.Context())
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		files := t.TempDir()
		err = carry(t, dir, filepath.Join(files, "state"), "groups: [{name: a, interval: 30s, rules: [{record: 'took:sum', expr: sum(took)}]}]", 50)
		require.ErrorContains(t, err, "the rule took:sum makes native histograms, which a state does not hold")
		left, err := os.ReadDir(files)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("a label that asks", func(t *testing.T) {
		t.Parallel()
		dir, file := day(t, 3).Blocks(2*time.Hour), filepath.Join(t.TempDir(), "state")
		asks := `groups: [{name: a, interval: 30s, rules: [{alert: Asks, expr: vector(1), labels: {n: '{{ range query "count(kube_node_info)" }}{{ . | value }}{{ end }}'}}]}]`
		require.NoError(t, carry(t, dir, file, asks, 50), "the first process has nothing to restore")
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		require.ErrorContains(t, carry(t, dir, file, asks, 60), "restoring the alerts of rule Asks: the template of a label gives something else")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// carry has one process read with these rules until so many minutes.
func carry(t *testing.T, dir, file, rules string, until float64) error {
	t.Helper()
	past := openTSDB(t, dir, history.Options{Rules: rulesOf(t, rules)})
	c, err := history.Carry(past, file, nil, At(30), At(until))
	require.NoError(t, err)
	return c.Moments(t.Context(), c.From(), At(until), func(history.Moment) error { return nil })
}

func TestAStateOfSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	dir, file := day(t, 3).Blocks(2*time.Hour), filepath.Join(t.TempDir(), "state")
	o := history.Options{Rules: rulesOf(t, unready)}
	past := openTSDB(t, dir, o)
	of := func(config, version string) map[string]string {
		return map[string]string{"configuration": config, "version of Drydock": version}
	}
	more, fewer := of("a", "1"), map[string]string{"configuration": "a"}
	more["configuration to compare with"] = "b"
	c, err := history.Carry(past, file, of("a", "1"), At(30), At(60))
	require.NoError(t, err)
	require.NoError(t, c.Moments(t.Context(), c.From(), At(60), func(history.Moment) error { return nil }))
	for said, now := range map[string]map[string]string{
		"was made with another configuration: name another file, or delete":      of("b", "1"),
		"was made with another version of Drydock: name another file, or delete": of("a", "2"),
		"was made with another configuration to compare with: name another file": more,
		"another version of Drydock: name another file, or delete this one":      fewer,
		"": of("a", "1"),
	} {
		_, err := history.Carry(past, file, now, At(30), At(70))
		if said == "" {
			require.NoError(t, err, "the control")
			continue
		}
		require.ErrorContains(t, err, said)
		require.ErrorContains(t, err, file)
	}
	_, err = history.Carry(past, file, of("a", "1"), At(30), At(50))
	require.ErrorContains(t, err, "goes to 2026-10-01T01:00:00Z: the end must not be before that")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, text := range map[string][]byte{"empty": nil, "other": []byte("apiVersion: v1"), "cut in its header": whole[:40]} {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		_, err = history.Carry(past, file, of("a", "1"), At(30), At(70))
		require.ErrorContains(t, err, "is no state of a backtest, or it is damaged", name)
	}
	require.NoError(t, os.WriteFile(file, whole[:len(whole)-20], 0o600))
	c, err = history.Carry(past, file, of("a", "1"), At(30), At(70))
	require.NoError(t, err)
	err = c.Moments(t.Context(), c.From(), At(70), func(history.Moment) error { return nil })
	require.ErrorContains(t, err, "is no state of a backtest, or it is damaged")
}

// TestAReadingThatFailsLeavesTheOldState: nothing of the new one is there, whenever it ends.
func TestAReadingThatFailsLeavesTheOldState(t *testing.T) {
	t.Parallel()
	dir, files := day(t, 3).Blocks(2*time.Hour), t.TempDir()
	file, o := filepath.Join(files, "state"), history.Options{Rules: rulesOf(t, unready)}
	carried(t, dir, file, o, At(30), At(90))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	past := openTSDB(t, dir, o)
	c, err := history.Carry(past, file, map[string]string{"configuration": "same"}, At(30), At(150))
	require.NoError(t, err)
	for left := range 60 {
		enough := errors.New("enough")
		n := 0
		err := c.Moments(t.Context(), c.From(), At(150), func(history.Moment) error {
			if n++; n > left {
				return enough
			}
			return nil
		})
		after, failed := os.ReadFile(file)
		require.NoError(t, failed)
		if err == nil {
			require.Greater(t, left, 5)
			require.NotEqual(t, before, after, "the control: all was read")
			break
		}
		require.ErrorIs(t, err, enough)
		require.Equal(t, before, after)
		all, failed := os.ReadDir(files)
		require.NoError(t, failed)
		require.Len(t, all, 1)
	}
}

// TestAStateEndsWithTheData: a snapshot that ends before the run does is no proof that there was nothing. The next one may have it.
func TestAStateEndsWithTheData(t *testing.T) {
	t.Parallel()
	snapshot := func(last float64) string {
		r := New(t)
		Every(0, last, func(when time.Time, minutes float64) {
			one := Machine{Name: "one"}
			if minutes >= 70 && minutes < 90 {
				one.Ready = "unknown"
			}
			r.Scrape(when, "a", KubeStateMetrics("a", one, Machine{Name: "two"}))
		})
		return r.Blocks(2 * time.Hour)
	}
	early, late, files := snapshot(60), snapshot(200), t.TempDir()
	for name, o := range map[string]history.Options{"rules": {Rules: rulesOf(t, stateful)}, "recorded": {Recorded: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(files, name)
			first, _ := carried(t, early, file, o, At(30), At(120))
			require.Equal(t, At(120), first[len(first)-1].Gap.Until, "the control: that run had no data for its last hour")
			same, _ := carried(t, early, file, o, At(30), At(120))
			require.Equal(t, text(t, first), text(t, same), "the report can be printed again")
			got, _ := carried(t, late, file, o, At(30), At(180))
			whole, _ := carried(t, late, filepath.Join(files, name+"-whole"), o, At(30), At(180))
			require.Equal(t, text(t, whole), text(t, got))
		})
	}
}
