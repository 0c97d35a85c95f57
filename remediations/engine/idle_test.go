package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

// askedFor is how often the instance has made that port call so far.
func (w *world) askedFor(i *instance, what string) int {
	return at(w, func() int { return i.asked[what] })
}

// TestTheLedgerIsReadForAnArrivalOnlyWhenOneIsAwaited: the replica that receives the self-test's
// alert notes it in the ledger.
func TestTheLedgerIsReadForAnArrivalOnlyWhenOneIsAwaited(t *testing.T) {
	for name, again := range map[string]bool{"another replica noted a later one": true, "nobody did": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, selfTestConfig(t), 6, func(t *testing.T, w *world) {
				w.do(func() { w.selfTest = []alerts.Alert{{Receivers: []string{"drydock"}}} })
				i := w.start()
				w.pass(time.Second)
				w.do(func() { w.arrive(time.Now()) })
				require.True(t, w.until(time.Minute, func() bool { return mustLedger(w).Status.SelfTest.State == selftest.OK }))

				w.pass(leadYoung)

				looks, loads := w.askedFor(i, "look"), w.askedFor(i, "load")
				w.pass(7 * time.Minute)
				require.Greater(t, w.askedFor(i, "look"), looks+20, "it polls")
				require.Equal(t, loads, w.askedFor(i, "load"), "an arrival that is young answers all there is to ask")

				want := selftest.NotArrived
				if again {
					want = selftest.OK
					w.do(func() { w.arrive(time.Now()) })
				}
				w.pass(7 * time.Minute)
				require.Equal(t, want, w.selfTestState())
				require.Greater(t, w.askedFor(i, "load"), loads)
			})
		})
	}
}

// TestAlertsThatNoNodeHasRoomForAreLeftToTheNextPoll: the engine does not spin on them, however
// many there are.
func TestAlertsThatNoNodeHasRoomForAreLeftToTheNextPoll(t *testing.T) {
	inWorld(t, modelConfig(), 64, func(t *testing.T, w *world) {
		w.admit = func(map[string]string, remediations.Alert) ([]string, bool) { return nil, false }
		i := w.start()
		w.do(func() {
			for n := range w.nodes {
				w.ail(n, 1)
			}
		})
		w.pass(time.Minute)
		looks, passes := w.askedFor(i, "look"), w.askedFor(i, "nodes")
		w.pass(5 * time.Minute)
		looks, passes = w.askedFor(i, "look")-looks, w.askedFor(i, "nodes")-passes
		require.Positive(t, looks)
		require.LessOrEqual(t, passes, 5*looks, "it looks at the Nodes when Alertmanager has answered, and rests in between")
		require.Zero(t, w.askedFor(i, "write"))
	})
}

// TestTheProviderIsAskedWhileAlertmanagerIs: both answers take time, and both together take no
// longer than one. The provider is not asked about a node that a guard holds anyway.
func TestTheProviderIsAskedWhileAlertmanagerIs(t *testing.T) {
	const takes = 2 * time.Second
	for name, paused := range map[string]bool{"free": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				i := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.lookTakes, w.mood.survey = takes, takes
					if paused {
						w.hold("n0", edit(remediations.PauseKey, "true"))
					}
					w.ail("n0", 1)
				})
				w.do(func() { w.post("n0", remediations.StatusFiring) })
				began, looks := time.Now(), w.askedFor(i, "look")
				if paused {
					w.pass(time.Minute)
					require.Greater(t, w.askedFor(i, "look"), looks)
					require.Zero(t, w.askedFor(i, "survey"))
					return
				}
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) > 0 }))
				require.Less(t, time.Since(began), 2*takes)
			})
		})
	}
}

// TestNewsStartsAPollAtOnce: nothing else queries Alertmanager between two polls.
func TestNewsStartsAPollAtOnce(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		i := w.start()
		w.pass(16 * time.Second)
		looks := w.askedFor(i, "look")
		w.pass(time.Second)
		require.Equal(t, looks, w.askedFor(i, "look"))
		i.engine.News()
		w.pass(time.Second)
		require.Equal(t, looks+1, w.askedFor(i, "look"))
	})
}

// TestSlotOfAStalledFormerLeaderIsFreed: nothing else makes the leader read the ledger. A new
// leader reads it at each poll, and later only from time to time.
func TestSlotOfAStalledFormerLeaderIsFreed(t *testing.T) {
	for name, c := range map[string]struct{ after, within time.Duration }{
		"just before": {time.Minute, 16 * time.Second}, "hours ago": {3 * time.Hour, ledgerGood + 16*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(c.after)
				w.do(func() {
					l := mustLedger(w)
					l.Slots = append(l.Slots, ledger.Slot{Node: "n0", Repair: "gone00", Attempt: "gone00-0-1", Policy: "node-not-ready", Since: time.Now().Add(-time.Minute)})
					w.ledger = l.Encode()
					w.ledgerRV++
				})
				require.True(t, w.until(c.within, func() bool { return len(mustLedger(w).Slots) == 0 }))
			})
		})
	}
}

// TestARepairThatIsHeldSeesAFreedSlotAtTheNextPoll: another process freed the slot in the ledger.
func TestARepairThatIsHeldSeesAFreedSlotAtTheNextPoll(t *testing.T) {
	c := modelConfig()
	c.Limits.Concurrent = remediations.Quantity{Value: 1}
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		set := func(slots ...ledger.Slot) {
			l := mustLedger(w)
			l.Slots = slots
			w.ledger = l.Encode()
			w.ledgerRV++
		}
		w.do(func() {
			set(ledger.Slot{Kind: "rack", Node: "n4", Repair: "r4", Attempt: "r4-0-1", Policy: "node-not-ready", Since: time.Now()})
		})
		w.start()
		w.pass(leadYoung + time.Minute)
		w.do(func() { w.ail("n0", 1) })
		w.pass(3 * time.Minute)
		require.Zero(t, w.callCount(), "the control: the slot holds the repair")
		w.do(func() { set() })
		require.True(t, w.until(20*time.Second, func() bool { return len(w.calls) > 0 }))
	})
}
