package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// TestAMachineThatIsSwitchedOffReleasesItsPods: the taint that releases the pods is set only once
// the provider reports that the machine is off. The plan ends, and the taint stays until the
// machine has booted again, even after a reset.
func TestAMachineThatIsSwitchedOffReleasesItsPods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		off    bool
	}{
		"at once":                   {func(*world) {}, true},
		"after a while":             {func(w *world) { w.powerTakes = 2 * time.Minute }, true},
		"too late":                  {func(w *world) { w.powerTakes = 9 * time.Minute }, false},
		"the provider does nothing": {func(w *world) { w.mood.idle = true }, false},
		"the provider says nothing": {func(w *world) { w.mood.cut = true }, false},
		"the request was cut off":   {func(w *world) { w.mood.after = time.Hour }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, planned("powerOff"), 6, func(t *testing.T, w *world) {
				w.do(func() { w.powerTakes = 10 * time.Second; c.change(w) })
				w.during(t, "powerOff")
				require.Equal(t, c.off, w.until(4*time.Minute, func() bool { return w.outOfService("n0") }))
				require.True(t, w.until(10*time.Minute, func() bool { return w.record("n0").Phase == remediations.PhaseExhausted }))
				require.Equal(t, []string{"powerOff"}, w.callsOf())
				note := w.toldOf("RepairExhausted")[0].Note
				if !c.off {
					require.NotContains(t, note, "released")
					return
				}
				require.Contains(t, note, "Drydock switched it off, and its pods and volumes were released. Repair the machine and switch it on")
				w.do(func() {
					w.edit("n0", edit(remediations.ResetKey, "true"))
					w.hold("n0", edit(remediations.PauseKey, "true"))
				})
				require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r == nil || r.Phase != remediations.PhaseExhausted }))
				w.do(func() { w.heal("n0") })
				w.pass(2 * time.Minute)
				require.True(t, at(w, func() bool { return w.outOfService("n0") }), "the control: a pause holds it")
				w.do(func() { w.unhold("n0") })
				require.True(t, w.until(time.Minute, func() bool { return !w.outOfService("n0") }))
			})
		})
	}
}

// TestAReadyNodeIsNotMarked: its pods run, so it does not get the out-of-service taint, whatever
// its provider reports.
func TestAReadyNodeIsNotMarked(t *testing.T) {
	for name, lies := range map[string]bool{"it runs, and the provider lies": true, "it is off": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, planned("powerOff"), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.lies.provesAnything, w.mood.idle = true, lies; w.breakDown("n0", 9) })
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				require.Equal(t, !lies, w.until(4*time.Minute, func() bool { return w.outOfService("n0") }))
			})
		})
	}
}

// TestAMachineThatAPersonSwitchesOnIsInServiceAgain: the taint is removed while the exhausted
// repair still waits for the person, but not before the node is Ready.
func TestAMachineThatAPersonSwitchesOnIsInServiceAgain(t *testing.T) {
	inWorld(t, planned("powerOff"), 6, func(t *testing.T, w *world) {
		w.do(func() { w.powerTakes = 10 * time.Second })
		w.during(t, "powerOff")
		require.True(t, w.until(10*time.Minute, func() bool { return w.record("n0").Phase == remediations.PhaseExhausted }))
		w.do(func() { w.reboot("n0") }) // it boots, and is as sick as before
		w.pass(5 * time.Minute)
		require.True(t, at(w, func() bool { return w.outOfService("n0") }))
		w.do(func() { w.heal("n0") })
		require.True(t, w.until(time.Minute, func() bool { return !w.outOfService("n0") }))
		require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
	})
}

// TestAPlanContinuesAfterTheMachineIsOff: a later reboot switches the machine on, and its cure
// removes the taint. The step is not issued again after its proof.
func TestAPlanContinuesAfterTheMachineIsOff(t *testing.T) {
	c := planned("powerOff", "reboot")
	c.Policies[0].Plan[0].Attempts = 3
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.ail("n0", 1) })
		require.True(t, w.until(5*time.Minute, func() bool { return w.outOfService("n0") }))
		require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 2 }), "the plan waits for nothing more")
		require.True(t, at(w, func() bool { return w.outOfService("n0") }))
		w.pass(5 * time.Minute)
		require.Equal(t, []string{"powerOff", "reboot"}, w.callsOf())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
		require.False(t, at(w, func() bool { return w.outOfService("n0") }))
	})
}

// TestALaterStepKnowsThatDrydockSwitchedTheMachineOff: the step need not assume that a person
// switched it off.
func TestALaterStepKnowsThatDrydockSwitchedTheMachineOff(t *testing.T) {
	inWorld(t, planned("reboot", "powerOff", "reboot"), 6, func(t *testing.T, w *world) {
		var knows []bool
		w.actuators = map[string]Actuator{"reboot": noting{func(m Machine) { knows = append(knows, m.SwitchedOff) }}}
		w.do(func() { w.ail("n0", 9) })
		w.start()
		require.True(t, w.until(20*time.Minute, func() bool { return len(knows) == 2 }))
		require.Equal(t, []bool{false, true}, knows)
	})
}

// TestAPersonStopsThePlanOfAMachineThatIsOff: a cancel releases nothing, and what was released
// before it stays so.
func TestAPersonStopsThePlanOfAMachineThatIsOff(t *testing.T) {
	for name, marked := range map[string]bool{"before the proof": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, planned("powerOff", "reboot"), 6, func(t *testing.T, w *world) {
				w.do(func() { w.powerTakes = time.Minute })
				w.during(t, "powerOff")
				if marked {
					require.True(t, w.until(5*time.Minute, func() bool { return w.outOfService("n0") }))
				} else {
					w.pass(20 * time.Second)
				}
				id := w.recordOf("n0").ID
				w.do(func() {
					w.cancelled[id] = time.Now()
					w.edit("n0", edit(remediations.CancelKey, id))
				})
				require.True(t, w.until(2*time.Minute, func() bool { r := w.record("n0"); return r == nil || r.ID != id }))
				w.pass(5 * time.Minute)
				require.Equal(t, marked, at(w, func() bool { return w.outOfService("n0") }))
				w.do(func() { w.heal("n0") })
				w.pass(time.Minute)
				require.False(t, at(w, func() bool { return w.outOfService("n0") }))
			})
		})
	}
}

// TestACloudThatSaysShutDownDoesNotHoldTheMark: the cloud's taint is the effect of the step, so it
// does not hold the out-of-service taint. Before the step it holds the repair.
func TestACloudThatSaysShutDownDoesNotHoldTheMark(t *testing.T) {
	shutDown := func(w *world) {
		w.edit("n0", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.cloudprovider.kubernetes.io/shutdown"})
		})
	}
	t.Run("after it", func(t *testing.T) {
		inWorld(t, planned("powerOff"), 6, func(t *testing.T, w *world) {
			w.do(func() { w.powerTakes = 20 * time.Second })
			w.during(t, "powerOff")
			require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
			w.pass(time.Second)
			w.do(func() { shutDown(w) })
			require.True(t, w.until(2*time.Minute, func() bool { return w.outOfService("n0") }))
		})
	})
	t.Run("before it", func(t *testing.T) {
		inWorld(t, planned("powerOff"), 6, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { shutDown(w); w.ail("n0", 9) })
			w.pass(5 * time.Minute)
			require.Empty(t, w.callsOf())
		})
	})
}

// noting is an actuator that accepts each call, and notes its machine.
type noting struct{ note func(Machine) }

func (a noting) Act(_ context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error) {
	if err := mayStill(); err != nil {
		return remediations.CallRefused, err
	}
	a.note(m)
	return remediations.CallAccepted, nil
}

// powerKnockOuts are the knock-outs of a machine that is switched off.
func powerKnockOuts() map[string]knockOut {
	off := func(c *remediations.Config) { *c = *planned("powerOff") }
	return map[string]knockOut{
		"8: the provider is asked whether the machine is off": {
			config: off, speaks: "8: n0 is marked out of service, and its machine is not off",
			take: func(h *hands) { h.w.do(func() { h.w.lies.provesAnything = true }) },
			tale: func(t *testing.T, w *world) {
				w.do(func() { w.mood.idle = true })
				w.during(t, "powerOff")
				w.pass(3 * time.Minute)
			},
		},
		"8: an old answer does not show that the machine is off": {
			config: off, speaks: "8: n0 is marked out of service, and its machine is not off",
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					if said := s.Replacement; said != nil && said.MachineGone {
						fresh := *said
						fresh.At, s.Replacement = now, &fresh
					}
				})
			},
			tale: func(t *testing.T, w *world) {
				w.do(func() { w.powerTakes = 10 * time.Second })
				w.during(t, "powerOff")
				require.True(t, w.until(time.Minute, func() bool { return len(w.calls) == 1 }))
				w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")) })
				w.pass(40 * time.Second) // the provider says that it is off
				w.do(func() {            // a person switches it on, and its kubelet has not reported the boot yet
					m, old := w.machines["n0"], w.nodes["n0"].Status.NodeInfo.BootID
					w.hangs, m.bootTakes, m.bootID = true, time.Hour, &old
					w.reboot("n0")
				})
				w.pass(36 * time.Second)
				w.do(func() { w.unhold("n0") })
				w.pass(time.Minute)
			},
		},
		"8: the mark stays until the machine has booted again": {
			config: off, speaks: "8: took the mark off n0, and its machine has not booted since",
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					if r := s.Journal.Record; r.SwitchedOff() != nil && r.Phase == remediations.PhaseExhausted {
						r = r.Clone()
						r.SwitchedOff().BootID = ""
						s.Journal.Record = r
					}
				})
			},
			tale: func(t *testing.T, w *world) {
				w.do(func() { w.powerTakes = 10 * time.Second })
				w.during(t, "powerOff")
				require.True(t, w.until(10*time.Minute, func() bool { return w.record("n0").Phase == remediations.PhaseExhausted }))
				w.do(func() { w.edit("n0", edit(remediations.ResetKey, "true")) })
				w.pass(time.Minute)
			},
		},
	}
}
