package engine

import (
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

func selfTestConfig(t *testing.T) *remediations.Config {
	c := modelConfig()
	m, err := labels.NewMatcher(labels.MatchEqual, "alertname", "DrydockSelfTest")
	require.NoError(t, err)
	c.SelfTest, c.Receiver = labels.Matchers{m}, "drydock"
	return c
}

// saidOf are the Events with these reasons, oldest first.
func (w *world) saidOf(reasons ...string) (out []string) {
	w.do(func() {
		for _, e := range w.told {
			for _, r := range reasons {
				if e.Reason == r {
					out = append(out, r+" "+e.Action)
				}
			}
		}
	})
	return out
}

// series are an instance's own series, by name and label values.
func (i *instance) series(t *testing.T, name string) map[string]float64 {
	t.Helper()
	all, err := i.engine.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			out[valuesOf(m)] = m.GetGauge().GetValue()
		}
	}
	return out
}

func valuesOf(m *dto.Metric) (out string) {
	for _, l := range m.GetLabel() {
		out += l.GetValue()
	}
	return out
}

func (w *world) selfTestState() selftest.State {
	return at(w, func() selftest.State { return mustLedger(w).Status.SelfTest.State })
}

// TestEachStateOfTheSelfTestIsOneEvent: it checks what people see of each state in the ledger, the
// metrics and the Events, across restarts.
func TestEachStateOfTheSelfTestIsOneEvent(t *testing.T) {
	inWorld(t, selfTestConfig(t), 6, func(t *testing.T, w *world) {
		route := func(receivers ...string) {
			w.do(func() { w.selfTest = []alerts.Alert{{Receivers: receivers}} })
		}
		became := func(state selftest.State, within time.Duration) {
			t.Helper()
			require.True(t, w.until(within, func() bool { return mustLedger(w).Status.SelfTest.State == state }), "%s within %s; it is %q", state, within, w.selfTestState())
			series := w.last().series(t, "drydock_selftest_state")
			require.Len(t, series, len(selftest.States))
			for s, v := range series {
				require.InDelta(t, gauge(s == string(state)), v, 0, s)
			}
		}
		w.start()
		became(selftest.Missing, time.Minute)
		require.Empty(t, w.last().series(t, "drydock_selftest_last_arrival_timestamp_seconds"))
		require.Contains(t, at(w, func() string { return w.told[len(w.told)-1].Note }), "ruleSelector")
		route("pager")
		became(selftest.Unrouted, time.Minute)
		route("pager", "drydock")
		became(selftest.Unknown, time.Minute)
		w.restart(w.config)
		became(selftest.NotArrived, 2*time.Minute)
		w.restart(w.config)
		w.pass(5 * time.Minute)
		require.Equal(t, []string{"NotConnected missing", "NotConnected unrouted", "NotConnected not_arrived"}, w.saidOf("NotConnected", "Connected"), "each once, and not again by another leader")

		away := func() {
			w.do(func() { w.replicas = [2]replicaState{{dead: true}, {dead: true}} })
			became(selftest.Unknown, 90*time.Second)
			w.do(w.repairEverything)
		}
		away()
		became(selftest.NotArrived, 2*time.Minute)
		require.Len(t, w.saidOf("NotConnected"), 3, "nor because nobody could say for a while")

		arrival := at(w, time.Now).Truncate(time.Second)
		w.do(func() { w.arrive(arrival) })
		became(selftest.OK, time.Minute)
		away()
		became(selftest.OK, time.Minute)
		require.Equal(t, map[string]float64{"": float64(arrival.Unix())}, w.last().series(t, "drydock_selftest_last_arrival_timestamp_seconds"))
		w.restart(w.config)
		w.pass(16 * time.Second)
		require.Equal(t, selftest.OK, w.selfTestState(), "the last arrival outlives a restart")
		require.Equal(t, []string{"Connected ok"}, w.saidOf("Connected"))

		old := w.last()
		w.do(old.cancel)
		w.pass(6 * time.Second)
		require.Empty(t, old.series(t, "drydock_selftest_state"), "a replica that no longer leads says nothing")
		require.Empty(t, old.series(t, "drydock_selftest_last_arrival_timestamp_seconds"))
	})
}

// TestSelfTestHoldsNothing: whatever its state, a repair continues normally, and no repair takes a
// slot twice.
func TestSelfTestHoldsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*world)
		state   selftest.State
	}{
		"missing":     {func(*world) {}, selftest.Missing},
		"unrouted":    {func(w *world) { w.selfTest = []alerts.Alert{{Receivers: []string{"pager"}}} }, selftest.Unrouted},
		"not arrived": {func(w *world) { w.selfTest = []alerts.Alert{{Receivers: []string{"drydock"}}} }, selftest.NotArrived},
		"unreadable": {func(w *world) {
			w.selfTest = []alerts.Alert{{Receivers: []string{"drydock"}}}
			w.ledger[ledger.KeyArrival] = "yesterday"
			w.ledgerRV++
		}, selftest.NotArrived},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, selfTestConfig(t), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(time.Second)
				w.do(func() { c.prepare(w) })
				w.pass(3 * time.Minute)
				require.Equal(t, c.state, w.selfTestState())
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestArrivalDoesNotConflictWithTheLeadersSave: each replica writes this one key of the ledger at
// any time, and the leader's saves lose nothing by it. Any other write to the ledger is still a
// conflict.
func TestArrivalDoesNotConflictWithTheLeadersSave(t *testing.T) {
	inWorld(t, selfTestConfig(t), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(time.Second)
		e := w.last().engine
		save := func(policy string) error {
			l := e.ledger.Clone()
			l.Stop(policy, "why")
			return e.saveLedger(t.Context(), l, e.ledgerAt)
		}
		arrival := at(w, time.Now).UTC().Truncate(time.Second)
		w.do(func() { w.arrive(arrival) })
		require.NoError(t, save("a"))
		stored := at(w, func() *ledger.Ledger { return mustLedger(w) })
		require.Equal(t, map[string]string{"a": "why"}, stored.Status.Stopped)
		require.Equal(t, arrival, stored.Arrival, "and the arrival stays")
		require.NoError(t, save("b"), "without an arrival in between, too")

		w.do(func() {
			w.arrive(arrival.Add(time.Minute))
			w.ledger["repairs"] = `{"m":[{"repair":"r9","at":"2026-01-01T00:00:00Z"}]}`
		})
		require.ErrorIs(t, save("c"), ErrConflict)
		require.Nil(t, e.ledger, "it is read again")
	})
}

// TestDeletedLedgerKeepsTheArrival: the leader writes the arrival that it knows into the new
// ledger.
func TestDeletedLedgerKeepsTheArrival(t *testing.T) {
	inWorld(t, selfTestConfig(t), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(time.Second)
		arrival := at(w, time.Now).UTC().Truncate(time.Second)
		w.do(func() { w.arrive(arrival) })
		w.pass(16 * time.Second)
		w.do(func() { w.ledger = nil })
		w.pass(16 * time.Second)
		require.Equal(t, arrival, at(w, func() time.Time { return mustLedger(w).Arrival }))
	})
}
