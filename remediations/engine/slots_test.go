package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestSlotThatNoRepairOccupies: a former leader may still write the intent of a young slot, so that
// slot stays. A slot whose Node is gone or was replaced is freed.
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
					s := ledger.Slot{Node: c.node, Policy: "node-not-ready", UID: c.uid, Repair: "r9998", Attempt: "r9998-0-1", Since: time.Now()}
					if c.uid == "" && w.nodes[c.node] != nil {
						s.UID = string(w.nodes[c.node].UID)
					}
					w.ledger, w.ledgerRV = (&ledger.Ledger{Slots: []ledger.Slot{s}, Repairs: map[string][]ledger.Begun{}}).Encode(), 7
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
				require.Equal(t, 1, superseded, "a repair whose record is on no Node is told as superseded, once")
			})
		})
	}
}

// TestSlotOfAWaitingRepairIsFreedWithoutAnEvent: a leader died between the slot and the intent, and
// now a person holds the repair, whose record is there.
func TestSlotOfAWaitingRepairIsFreedWithoutAnEvent(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		first := w.start()
		w.do(func() {
			w.hold("n0", edit(remediations.PauseKey, "true"))
			w.ail("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		require.True(t, w.until(time.Minute, func() bool { return w.record("n0") != nil }))
		id := at(w, func() string { return w.record("n0").ID })
		w.do(func() {
			l := mustLedger(w)
			l.Slots = append(l.Slots, ledger.Slot{Node: "n0", Policy: "node-not-ready", UID: string(w.nodes["n0"].UID), Repair: id, Attempt: id + "-0-1", Since: time.Now()})
			w.ledger, w.ledgerRV = l.Encode(), w.ledgerRV+1
		})
		w.do(func() { first.cancel() })
		w.pass(10 * time.Second)
		w.start()
		w.pass(2 * time.Minute)
		require.Empty(t, at(w, func() []ledger.Slot { return mustLedger(w).Slots }))
		require.Equal(t, id, at(w, func() string { return w.record("n0").ID }))
		require.Empty(t, w.toldOf("RepairSuperseded"))
	})
}

// TestSlowWritesLeaveEachIntentYoung: a pass over many nodes takes longer than an intent is valid.
func TestSlowWritesLeaveEachIntentYoung(t *testing.T) {
	conf := modelConfig()
	conf.Limits.Concurrent.Value = 3
	inWorld(t, conf, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			w.roundTrip = 3 * time.Second
			for _, n := range []string{"n0", "n1", "n2"} {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(10 * time.Minute)
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeRecovered, remediations.OutcomeRecovered}, w.outcomes())
		require.Equal(t, 3, w.callCount())
		for _, e := range at(w, func() []remediations.Entry { return w.ended }) {
			require.Equal(t, []string{"reboot:1"}, e.Steps.Texts(), "no attempt was spent on an intent that was too old")
		}
	})
}

// TestLeaderThatLostItsLeadAfterItsIntentMakesNoCall: the next leader may already have begun.
func TestLeaderThatLostItsLeadAfterItsIntentMakesNoCall(t *testing.T) {
	for name, loses := range map[string]bool{"it lost it": true, "it leads on": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				first := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.mood.before = 3 * time.Second
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				require.True(t, w.until(10*time.Second, func() bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseActing }))
				if loses {
					w.do(first.cancel)
				}
				w.pass(10 * time.Second)
				require.Equal(t, loses, w.callCount() == 0)
				phase := map[bool]remediations.Phase{true: remediations.PhasePending, false: remediations.PhaseVerifying}[loses]
				require.Equal(t, phase, w.recordOf("n0").Phase, "its outcome is on record all the same: a call that was withheld costs no attempt")
			})
		})
	}
}

// TestResetForgetsWhatWasCounted: a person has checked the machine, and its counts start again.
func TestResetForgetsWhatWasCounted(t *testing.T) {
	for name, resets := range map[string]bool{"reset": true, "only healed": false} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Limits.RepairsPerNode, conf.Policies[0].Plan[0].Attempts, conf.Policies[0].CordonExhausted = 1, 1, false
			inWorld(t, conf, 6, func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 9) })
				w.pass(30 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
				w.do(func() {
					w.heal("n0")
					if resets {
						w.edit("n0", edit(remediations.ResetKey, "true"))
					}
				})
				w.pass(10 * time.Minute)
				w.do(func() { w.ail("n0", 1) })
				w.pass(10 * time.Minute)
				require.Equal(t, resets, w.callCount() == 2)
			})
		})
	}
}

// TestHoldOfTheFleetIsOneEvent: when no Alertmanager answers, five sick nodes cause one Event, and
// no write on a Node.
func TestHoldOfTheFleetIsOneEvent(t *testing.T) {
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
				require.Equal(t, string(remediations.ReasonAlertUnconfirmed), e.Action)
			}
		}
		require.Equal(t, 1, held)
		for _, change := range at(w, func() []string { return first.log }) {
			require.NotContains(t, change, "write")
		}
		w.do(w.repairEverything)
		w.pass(10 * time.Minute)
		require.Equal(t, 5, w.callCount(), "the control")
	})
}

// TestTheLedgerNamesWhoHoldsTheLimit: the hold's message names the node that has the slot now, also
// after the slot went to another node.
func TestTheLedgerNamesWhoHoldsTheLimit(t *testing.T) {
	conf := modelConfig()
	conf.Limits.Unhealthy.Value, conf.Limits.Concurrent.Value = 100, 1
	inWorld(t, conf, 20, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range []string{"n1", "n2", "n3"} {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		for i := range 2 {
			require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) == i+1 }))
			w.pass(5 * time.Second)
			slots := w.slots(t)
			require.Len(t, slots, 1)
			require.Contains(t, at(w, func() string { return w.book().Status.Holds[remediations.ReasonAtLimit] }), "("+slots[0].Node+")")
		}
		require.NotEqual(t, w.callTo(0), w.callTo(1), "the control: another one has the slot")
	})
}
