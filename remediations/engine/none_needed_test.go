package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// promisingNone is a configuration whose provider promises no new machine for one that it takes
// away.
func promisingNone() *remediations.Config {
	c := wholeConfig()
	c.Providers = []remediations.Provider{{Name: "cloud", Steps: []string{"replace"}, PromisesNone: true}}
	return c
}

// shrunk is the scenario of a machine that is taken away without a replacement, until its Node is
// gone.
func (w *world) shrunk(t *testing.T) {
	t.Helper()
	w.do(func() { w.recycling.joins = 0 })
	w.during(t, "replace")
	require.True(t, w.until(5*time.Minute, func() bool { return w.nodes["n0"] == nil }))
}

func (w *world) recovered() bool { return len(w.toldOf("RepairRecovered")) > 0 }

// TestAReplacementThatNeedsNoNewMachineRecovers: no Node is left for the Event, so the Event is
// about Drydock itself.
func TestAReplacementThatNeedsNoNewMachineRecovers(t *testing.T) {
	inWorld(t, promisingNone(), 6, func(t *testing.T, w *world) {
		w.shrunk(t)
		gone := time.Now()
		require.True(t, w.until(10*time.Minute, func() bool { return len(w.told) > 0 && w.told[len(w.told)-1].Reason == "RepairRecovered" }))
		require.GreaterOrEqual(t, time.Since(gone), time.Minute, "it counts once it has held")
		w.pass(30 * time.Minute)
		told := w.toldOf("RepairRecovered")
		require.Len(t, told, 1)
		require.Contains(t, told[0].Note, "of Node n0 by policy node-not-ready")
		require.Contains(t, told[0].Note, "replace:1 cured it: the machine is gone and nothing needs another one, and the alert is gone; no Node came for Node n0")
		require.Empty(t, w.toldOf("RepairExhausted"))
		require.Empty(t, w.slots(t))
		require.Empty(t, w.orphans(t))
		require.Empty(t, w.outcomes(), "in no Node's history")
		require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
		require.NotContains(t, at(w, func() map[string]int { return w.book().Status.Exhausted }), "node-not-ready")
	})
}

// TestAPodThatWaitsKeepsAReplacementFromBeingProven: people can read which pod waits. When it has a
// node, the repair ends. The pods are recreated only some time after the Node is gone.
func TestAPodThatWaitsKeepsAReplacementFromBeingProven(t *testing.T) {
	for name, ends := range map[string]bool{"until it has a node": true, "for ever": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, promisingNone(), 6, func(t *testing.T, w *world) {
				w.shrunk(t)
				w.pass(40 * time.Second)
				w.do(func() { w.wait(true) })
				w.pass(8 * time.Minute)
				require.False(t, w.recovered())
				require.Len(t, w.slots(t), 1)
				require.Equal(t, "there is no new instance", w.orphans(t)[0].Record.Note)
				w.do(func() { w.wait(!ends) })
				w.pass(10 * time.Minute)
				require.Equal(t, ends, w.recovered())
				require.Len(t, w.toldOf("RepairExhausted"), map[bool]int{true: 0, false: 1}[ends])
				require.Empty(t, w.slots(t))
			})
		})
	}
}

// TestAProviderThatPromisesAMachineMustBringOne: a replacement is not proven by the provider's
// answer that no new machine is needed.
func TestAProviderThatPromisesAMachineMustBringOne(t *testing.T) {
	inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
		w.do(func() { w.lies.noneNeeded = true })
		w.shrunk(t)
		w.pass(20 * time.Minute)
		require.False(t, w.recovered())
		require.Contains(t, w.toldOf("RepairExhausted")[0].Note, "the new machine has not joined as a Node")
	})
}

// TestTheNodeOfTheOldMachineIsBack: a machine that the provider reports as gone has registered
// again.
func TestTheNodeOfTheOldMachineIsBack(t *testing.T) {
	inWorld(t, promisingNone(), 6, func(t *testing.T, w *world) {
		w.shrunk(t)
		w.do(func() {
			w.join("n0", "civo://m0")
			w.machines["n0"].recycled = time.Now().Add(-time.Hour) // according to the provider it stays gone
		})
		w.pass(25 * time.Minute)
		require.False(t, w.recovered())
		require.Len(t, w.toldOf("RepairExhausted"), 1)
	})
}

// TestAReplacementWithoutAMachineSurvivesItsLeader: the next leader waits for the same time again.
func TestAReplacementWithoutAMachineSurvivesItsLeader(t *testing.T) {
	inWorld(t, promisingNone(), 6, func(t *testing.T, w *world) {
		w.shrunk(t)
		w.pass(50 * time.Second)
		w.restart(w.config)
		w.pass(50 * time.Second)
		require.False(t, w.recovered())
		w.pass(5 * time.Minute)
		require.Len(t, w.toldOf("RepairRecovered"), 1)
	})
}

// TestATrialThatLeavesNoNodeClosesItsBreaker: no history shows that the trial cured its machine,
// but it did.
func TestATrialThatLeavesNoNodeClosesItsBreaker(t *testing.T) {
	conf := promisingNone()
	conf.Policies[0].Plan = conf.Policies[0].Plan[2:]
	conf.Limits.Concurrent.Value, conf.Limits.Unhealthy.Value = 2, 40
	inWorld(t, conf, 8, func(t *testing.T, w *world) {
		w.do(func() { w.recycling.joins = 0 })
		w.onTrial(t)
		require.True(t, w.until(20*time.Minute, func() bool { return len(w.told) > 0 && w.told[len(w.told)-1].Reason == "RepairRecovered" }))
		require.NotContains(t, at(w, func() map[string]ledger.Breaker { return w.book().Status.Breakers }), ledger.ScopeCluster)
		require.True(t, w.until(10*time.Minute, func() bool { return w.calls[len(w.calls)-1].node == "n1" }), "n1 follows")
	})
}
