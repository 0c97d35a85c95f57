package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// flaggedByConditions is a fleet whose nodes stay Ready and show their fault by a condition.
func flaggedByConditions(nodes int) *remediations.Config {
	c := modelConfig()
	c.Policies[0].Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.Condition, Name: conditionBroken, Status: "True"}}}
	c.Limits.Concurrent.Value, c.Limits.Unhealthy.Value = 10, 90
	c.Limits.CommonCause = remediations.CommonCause{Nodes: nodes, Within: 5 * time.Minute}
	return c
}

// TestOneOfManyNodesWithOneFaultIsTried: four nodes get the same condition within a minute. If a
// reboot cures it, they are repaired one after the other. If not, nothing is done to the other
// nodes. With limits.commonCause off, the control, all are repaired at once.
func TestOneOfManyNodesWithOneFaultIsTried(t *testing.T) {
	all := []string{"n0", "n1", "n2", "n3"}
	for name, c := range map[string]struct {
		limit, reboots int
		first, in2h    int
	}{
		"a reboot cures":         {3, 1, 1, 4},
		"nothing cures":          {3, 99, 1, 2},
		"off, and a reboot does": {0, 1, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, flaggedByConditions(c.limit), 10, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					for _, n := range all {
						w.breakDown(n, c.reboots)
					}
				})
				require.True(t, w.until(3*time.Minute, func() bool { return len(w.calls) > 0 }))
				w.pass(30 * time.Second)
				require.Equal(t, c.first, w.callCount())
				w.pass(2 * time.Hour)
				require.Equal(t, c.in2h, w.callCount())
				if c.reboots == 99 {
					said := w.book().Status.Holds[remediations.ReasonCommonCause]
					require.True(t, strings.HasSuffix(said, "did not help, so a person must find the cause"), said)
				}
			})
		})
	}
}

// TestATrialThatIsHeldGivesItsPlaceToAnother: a common cause or a half-open breaker tries a node
// first, which is paused between two attempts. Another node, which one reboot cures, does not wait
// for the person.
func TestATrialThatIsHeldGivesItsPlaceToAnother(t *testing.T) {
	t.Run("of a common cause", func(t *testing.T) {
		inWorld(t, flaggedByConditions(3), 10, func(t *testing.T, w *world) {
			w.start()
			w.pass(16 * time.Second)
			w.do(func() { w.breakDown("n0", 99); w.breakDown("n1", 1); w.breakDown("n2", 1) })
			require.True(t, w.until(3*time.Minute, func() bool { return len(w.calls) > 0 }))
			first := at(w, func() string { return w.calls[0].node })
			w.do(func() { w.hold(first, edit(remediations.PauseKey, "true")) })
			w.pass(30 * time.Minute)
			require.Contains(t, w.outcomes(), remediations.OutcomeRecovered)
		})
	})
	t.Run("of a half-open breaker", func(t *testing.T) {
		conf := modelConfig()
		conf.Limits.Concurrent.Value, conf.Limits.Unhealthy.Value = 3, 40
		inWorld(t, conf, 6, func(t *testing.T, w *world) {
			w.openedBy(t, "n0", "n1", "n2", "n3")
			w.do(func() { w.heal("n2"); w.heal("n3"); w.machines["n1"].broken = 1 })
			require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) > 0 }))
			first := at(w, func() string { return w.calls[0].node })
			require.Equal(t, "n0", first)
			w.do(func() { w.hold(first, edit(remediations.PauseKey, "true")) })
			w.pass(40 * time.Minute)
			require.Contains(t, w.outcomes(), remediations.OutcomeRecovered, "n1 waits for nobody")
		})
	})
}

// TestAnAlertThatItsWitnessDeniesDoesNotCount: one false alert and one fault in a fleet of four
// open no breaker.
func TestAnAlertThatItsWitnessDeniesDoesNotCount(t *testing.T) {
	for name, real := range map[string]bool{"a false alert": false, "a real one, the control": true} {
		t.Run(name, func(t *testing.T) {
			conf := modelConfig()
			conf.Limits.Unhealthy.Value = 40
			inWorld(t, conf, 4, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.breakDown("n0", 1)
					if real {
						w.breakDown("n1", 1)
					} else {
						w.forge("n1")
					}
				})
				w.pass(5 * time.Minute)
				require.Equal(t, real, w.callCount() == 0)
			})
		})
	}
}

// TestAQuarantineOutlivesItsNode: the plan of a machine ran out, and its Node is deleted and
// registered again. Nothing more is done to the machine until a person resets it. Another machine
// starts its plan from the beginning, which is the control.
func TestAQuarantineOutlivesItsNode(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		calls   int
	}{
		"the same machine":               {"civo://m0", "civo://m0", 2},
		"another machine":                {"civo://m0", "civo://another", 4},
		"where Nodes have no providerID": {"", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.leave("n0"); w.join("n0", c.was) })
				w.start()
				w.pass(2 * time.Minute)
				w.do(func() { w.ail("n0", 99) })
				require.True(t, w.until(time.Hour, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseExhausted }))
				require.Equal(t, 2, w.callCount())
				w.pass(time.Minute)
				w.do(func() { w.leave("n0") })
				w.pass(2 * time.Minute)
				w.do(func() { w.join("n0", c.is); w.ail("n0", 99) })
				w.pass(3 * time.Hour)
				require.Equal(t, c.calls, w.callCount())
				require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(time.Hour)
				require.Greater(t, w.callCount(), c.calls, "a person let it begin anew")
			})
		})
	}
}
