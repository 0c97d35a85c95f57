package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// TestMissingDataCausesNoCall is invariant 6: no call is made while data is missing, and a call is
// made once the data is back.
func TestMissingDataCausesNoCall(t *testing.T) {
	for name, c := range map[string]struct{ lose, find func(w *world) }{
		"the node says nothing of itself": {
			func(w *world) { w.machines["n0"].mute = true; w.report(w.machines["n0"]) },
			func(w *world) { w.machines["n0"].mute = false; w.report(w.machines["n0"]) },
		},
		"the fleet is empty":           {func(w *world) { w.always["nodes"] = "empty" }, func(w *world) { clear(w.always) }},
		"the Nodes cannot be listed":   {func(w *world) { w.always["nodes"] = "lost" }, func(w *world) { clear(w.always) }},
		"the leases cannot be listed":  {func(w *world) { w.always["heartbeats"] = "lost" }, func(w *world) { clear(w.always) }},
		"there are no leases":          {func(w *world) { w.always["heartbeats"] = "empty" }, func(w *world) { clear(w.always) }},
		"nobody renews a lease":        {func(w *world) { w.leasesFrozen = time.Now() }, func(w *world) { w.leasesFrozen = time.Time{} }},
		"the ledger cannot be read":    {func(w *world) { w.always["load"] = "lost"; w.always["save"] = "lost" }, func(w *world) { clear(w.always) }},
		"no Alertmanager answers":      {func(w *world) { w.replicas = [2]replicaState{{dead: true}, {dead: true}} }, func(w *world) { w.repairEverything() }},
		"both Alertmanagers are empty": {func(w *world) { w.replicas = [2]replicaState{{empty: true}, {empty: true}} }, func(w *world) { w.repairEverything() }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { c.lose(w) })
				w.pass(time.Minute)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
				require.Zero(t, w.callCount())
				w.do(func() { c.find(w) })
				w.pass(5 * time.Minute)
				require.Equal(t, 1, w.callCount(), "the control")
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
			})
		})
	}
}

// TestLeaderWithAWrongClockMakesNoCall: with a clock hours ahead or behind, the leases of all nodes
// look stale or from the future.
func TestLeaderWithAWrongClockMakesNoCall(t *testing.T) {
	for offset, calls := range map[time.Duration]int{0: 1, 10 * time.Second: 1, 2 * time.Hour: 0, -2 * time.Hour: 0, 25 * time.Hour: 0, -25 * time.Hour: 0} {
		t.Run(offset.String(), func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.startWith(w.config, offset)
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(10 * time.Minute)
				require.Equal(t, calls, w.callCount())
				w.restart(w.config)
				w.pass(5 * time.Minute)
				require.Equal(t, 1, w.callCount(), "and once it is right, the repair begins")
				ends := w.outcomes()
				require.Equal(t, remediations.OutcomeRecovered, ends[len(ends)-1])
			})
		})
	}
}

// TestAlertsThatComeTwiceLateOrOutOfOrder: such posts change nothing, because Alertmanager's answer
// decides.
func TestAlertsThatComeTwiceLateOrOutOfOrder(t *testing.T) {
	for name, c := range map[string]struct {
		posts func(w *world)
		calls int
	}{
		"twice":                         {func(w *world) { w.post("n0", remediations.StatusFiring); w.post("n0", remediations.StatusFiring) }, 1},
		"resolved overtakes firing":     {func(w *world) { w.post("n0", remediations.StatusResolved); w.post("n0", remediations.StatusFiring) }, 1},
		"resolved, though it is firing": {func(w *world) { w.post("n0", remediations.StatusResolved) }, 1},
		"an hour late": {func(w *world) {
			w.postSince("n0", remediations.StatusFiring, time.Now().Add(-time.Hour))
		}, 1},
		"not at all":                      {func(*world) {}, 1},
		"firing, though the node is well": {func(w *world) { w.heal("n0"); w.post("n0", remediations.StatusFiring) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1); c.posts(w) })
				w.pass(10 * time.Minute)
				require.Equal(t, c.calls, w.callCount())
				require.NotContains(t, w.nodeOf("n0").Annotations, remediations.AlertPrefix+fingerprintOf("n0"), "and the alert's key is gone in the end")
				require.Nil(t, w.recordOf("n0"))
			})
		})
	}
}

// TestAlertsKeyThatCannotBeReadIsDropped: the unreadable key is dropped, and the poll's alert leads
// to the node's repair.
func TestAlertsKeyThatCannotBeReadIsDropped(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.do(func() {
			w.ail("n0", 1)
			w.edit("n0", func(n *corev1.Node) {
				n.Annotations[remediations.AlertPrefix+fingerprintOf("n0")] = "nonsense"
				n.Annotations[remediations.AlertPrefix+"zz"] = "nonsense"
			})
		})
		w.pass(5 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.AlertPrefix+"zz")
	})
}
