package history_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest/history"
	. "drydock.dev/drydock/internal/backtest/history/historytest"
)

// stateful are rules that remember: alerts that wait and that are kept, labels of a template, and a
// rule that fails.
const stateful = `
groups:
- name: long
  interval: 30s
  rules:
  - {alert: Waits, expr: 'kube_node_status_condition{condition="Ready",status="true"} == 0', for: 10m, keep_firing_for: 7m, labels: {of: '{{ $labels.node }}'}}
  - {alert: Always, expr: vector(1)}
  - {alert: Counts, expr: count(kube_node_info), for: 3m, labels: {n: '{{ $value }}'}}
- name: slow
  interval: 45s
  rules:
  - {alert: Flaps, expr: 'changes(kube_node_status_condition{condition="Ready",status="true"}[50m]) > 2'}
- {name: rare, interval: 50m, query_offset: 90s, rules: [{alert: Rare, expr: vector(1), for: 100m}]}
`

// counted counts the queries that a server is asked.
func counted(t *testing.T, r *Recording) (string, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	return r.ServeWithin(Limits{Before: func(http.ResponseWriter, *http.Request, int64) bool {
		n.Add(1)
		return false
	}}), &n
}

// TestAStateIsAskedBeforeTheServer: a later run asks only for what the file lacks, and says what a
// run without a file says, also with other rules.
func TestAStateIsAskedBeforeTheServer(t *testing.T) {
	t.Parallel()
	r := day(t, 12)
	url, asked := counted(t, r)
	file := filepath.Join(t.TempDir(), "state")
	run := func(o history.Options, from, until float64) (string, int64) {
		before := asked.Load()
		past := open(t, url, o)
		past.ReadAtOnce(time.Hour)
		out := text(t, moments(t, past, from, until))
		return out, asked.Load() - before
	}
	o := history.Options{Rules: rulesOf(t, unready)}
	kept := o
	kept.State = file
	_, all := run(kept, 60, 500)
	want, fresh := run(o, 60, 560)
	got, less := run(kept, 60, 560)
	require.Equal(t, want, got)
	require.Greater(t, all, int64(50), "the control")
	require.Less(t, less, fresh/2)

	other := kept
	other.Rules = rulesOf(t, stateful)
	want, fresh = run(history.Options{Rules: other.Rules}, 120, 560)
	got, less = run(other, 120, 560)
	require.Equal(t, want, got, "another beginning, and other rules")
	require.Less(t, less, fresh)
}

// TestARunThatIsStoppedLosesNoAnswer, also where it is stopped while it writes.
func TestARunThatIsStoppedLosesNoAnswer(t *testing.T) {
	t.Parallel()
	r := day(t, 12)
	url, asked := counted(t, r)
	file := filepath.Join(t.TempDir(), "state")
	o := history.Options{Rules: rulesOf(t, unready), State: file}
	stopped := open(t, url, o)
	stopped.ReadAtOnce(time.Hour)
	enough := errors.New("enough")
	n := 0
	require.ErrorIs(t, stopped.Moments(t.Context(), At(60), At(560), func(history.Moment) error {
		if n++; n > 40 {
			return enough
		}
		return nil
	}), enough)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data[:len(data)-7], 0o600))
	before := asked.Load()
	past := open(t, url, o)
	past.ReadAtOnce(time.Hour)
	got := moments(t, past, 60, 560)
	less := asked.Load() - before
	o.State = ""
	before = asked.Load()
	fresh := open(t, url, o)
	fresh.ReadAtOnce(time.Hour)
	require.Equal(t, text(t, moments(t, fresh, 60, 560)), text(t, got))
	require.Less(t, less, asked.Load()-before)
}

// TestAStateHasNoAnswerWhereDataMayStillCome: a run that goes beyond the data keeps nothing of the
// time after it.
func TestAStateHasNoAnswerWhereDataMayStillCome(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	run := func(r *Recording, state string) string {
		past := open(t, r.Serve(), history.Options{Rules: rulesOf(t, unready), State: state})
		past.ReadAtOnce(time.Hour)
		return text(t, moments(t, past, 60, 560))
	}
	early := run(day(t, 5), file)
	late := run(day(t, 12), file)
	require.Equal(t, run(day(t, 12), ""), late)
	require.NotEqual(t, early, late, "the control")
}

func TestAFileWithoutAStateIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	openState := func(cluster string) error {
		past, err := history.OpenPrometheus("http://localhost:9090", nil, history.Options{Recorded: true, State: file, ExternalLabels: model.LabelSet{"cluster": model.LabelValue(cluster)}})
		if err == nil {
			require.NoError(t, past.Close())
		}
		return err
	}
	require.NoError(t, openState("a"))
	require.NoError(t, openState("a"))
	require.ErrorContains(t, openState("b"), "is of another cluster")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1"), 0o600))
	require.ErrorContains(t, openState("a"), "is not the state of a backtest")
}
