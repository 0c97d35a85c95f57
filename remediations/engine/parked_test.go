package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// cordonedNow is how many nodes are cordoned, by Drydock or by others.
func (w *world) cordonedNow() (n int) {
	for _, node := range w.nodes {
		if node.Spec.Unschedulable {
			n++
		}
	}
	return n
}

// TestADrainedNodeThatWaitsKeepsItsPlace: something holds the step after the drain. No further node
// is drained meanwhile, also after a restart, where only the Node shows the drain. When the hold
// ends, all nodes are repaired, one after the other.
func TestADrainedNodeThatWaitsKeepsItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ hold, release func(w *world) }{
		"the provider cannot act": {
			func(w *world) { w.mood.trouble = "the pool is not ready" }, func(w *world) { w.mood.trouble = "" },
		},
		"the alert is silenced": {
			func(w *world) { w.machines["n0"].silenced = true }, func(w *world) { w.machines["n0"].silenced = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			conf := planned("drain", "replace")
			conf.Limits.ConcurrentPerZone.Value, conf.Limits.ConcurrentPerPool.Value = 9, 9
			inWorld(t, conf, 12, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.beforeDrain = func() { c.hold(w) }
					for _, n := range []string{"n0", "n1", "n2"} {
						w.ail(n, 9)
						w.post(n, remediations.StatusFiring)
					}
				})
				waits := func() bool { return isParked(w.nodes["n0"]) }
				require.True(t, w.until(10*time.Minute, waits), "%v", w.recordOf("n0"))
				most := 0
				watch := func(d time.Duration) {
					w.until(d, func() bool { most = max(most, w.cordonedNow()); return false })
				}
				watch(time.Hour)
				require.Equal(t, 1, most, "one node is out of service, and never two")
				require.Empty(t, w.slots(t), "Pending holds no slot of the ledger")
				holds := at(w, func() string { return mustLedger(w).Status.Holds[remediations.ReasonAtLimit] })
				require.Contains(t, holds, "repairs under way in the cluster: 1 of at most 1 (n0")

				w.restart(conf)
				watch(30 * time.Minute)
				require.Equal(t, 1, most, "a new leader counts the same")
				require.Zero(t, w.callCount())

				w.do(func() { c.release(w) }) // the control
				require.True(t, w.until(2*time.Hour, func() bool { most = max(most, w.cordonedNow()); return len(w.ended) == 3 }), "%v", w.outcomes())
				require.Equal(t, 1, most, "one after the other")
				require.Equal(t, []string{"replace", "replace", "replace"}, w.callsOf())
			})
		})
	}
}
