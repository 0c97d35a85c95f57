package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestSlotThatNoRepairOccupies: a former leader that took it may yet write its intent, so a young one is left alone;
// one of a Node that is gone, or another by now, is not.
func TestSlotThatNoRepairOccupies(t *testing.T) {
	for name, c := range map[string]struct {
		node, uid string
		freed     bool
	}{
		"of a Node that is there":   {"n0", "", false},
		"of a Node that is gone":    {"n9", "", true},
		"of a Node that is another": {"n0", "uid-of-old", true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() {
					w.known["n9"] = true
					s := remediations.Slot{Node: c.node, Policy: "node-not-ready", UID: c.uid, Repair: "r9998", Attempt: "r9998-0-1", Since: time.Now()}
					if c.uid == "" && w.nodes[c.node] != nil {
						s.UID = string(w.nodes[c.node].UID)
					}
					w.ledger, w.ledgerRV = (&remediations.Ledger{Slots: []remediations.Slot{s}, Repairs: map[string][]remediations.Begun{}}).Encode(), 7
				})
				w.start()
				w.do(func() { w.ail("n1", 1); w.post("n1", remediations.StatusFiring) })
				w.pass(25 * time.Second)
				require.Equal(t, c.freed, w.callCount() == 1)
				w.pass(2 * time.Minute)
				require.Equal(t, 1, w.callCount(), "and no slot is held for ever")
				superseded := 0
				for _, e := range at(w, func() []Event { return w.told }) {
					if e.Reason == "RepairSuperseded" {
						superseded++
					}
				}
				require.Equal(t, c.freed, superseded == 1, "the repair of a Node that is gone is told as superseded")
			})
		})
	}
}

// TestSlowWritesLeaveEachIntentYoung: a pass over many nodes takes longer than an intent is good for.
func TestSlowWritesLeaveEachIntentYoung(t *testing.T) {
	conf := modelConfig()
	conf.Limits.Concurrent.Value = 3
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			w.roundTrip = 2 * time.Second
			for _, n := range []string{"n0", "n1", "n2"} {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.Recovered, remediations.Recovered, remediations.Recovered}, w.outcomes())
		require.Equal(t, 3, w.callCount())
	})
}

// TestHoldOfTheFleetIsToldOnce: when no Alertmanager answers, five sick nodes are one Event, and no write on a Node.
func TestHoldOfTheFleetIsToldOnce(t *testing.T) {
	conf := modelConfig()
	conf.Limits.Unhealthy.Value = 100
	inWorld(t, conf, 20, func(t *testing.T, w *world) {
		first := w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			w.replicas = [2]replicaState{{dead: true}, {dead: true}}
			first.log = nil
			for _, n := range nodeNames[:5] {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(40 * time.Second)
		held := 0
		for _, e := range at(w, func() []Event { return w.told }) {
			if e.Reason == "RepairHeld" {
				held++
				require.Equal(t, string(remediations.AlertUnconfirmed), e.Action)
			}
		}
		require.Equal(t, 1, held)
		for _, change := range at(w, func() []string { return first.log }) {
			require.NotContains(t, change, "write")
		}
		w.do(w.mend)
		w.pass(10 * time.Minute)
		require.Equal(t, 5, w.callCount(), "the control")
	})
}
