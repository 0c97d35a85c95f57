package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
)

// planned is a configuration whose only policy has these steps, once each.
func planned(steps ...string) *remediations.Config {
	c := modelConfig()
	c.Policies[0].Plan = nil
	for _, step := range steps {
		c.Policies[0].Plan = append(c.Policies[0].Plan, remediations.Step{Name: step, Wait: 5 * time.Minute, Timeout: 10 * time.Minute, Attempts: 1})
		c.Provided[step] = true
	}
	return c
}

// TestAPlanThatRepeatsAStep: the proof of the issued attempt decides, and the history shows each
// attempt.
func TestAPlanThatRepeatsAStep(t *testing.T) {
	t.Run("the second reboot does nothing", func(t *testing.T) {
		inWorld(t, planned("reboot", "restart-kubelet", "reboot"), 6, func(t *testing.T, w *world) {
			w.start()
			w.pass(16 * time.Second)
			w.do(func() { w.ail("n0", 9); w.post("n0", remediations.StatusFiring) })
			require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) == 2 }))
			w.do(func() { w.mood.idle = true })
			require.True(t, w.until(20*time.Minute, func() bool { return len(w.calls) == 3 }))
			w.do(func() { w.heal("n0") })
			w.pass(3 * time.Minute)
			require.Empty(t, w.outcomes(), "the boot ID is still the one from before")
			w.pass(5 * time.Minute)
			require.Equal(t, []remediations.Outcome{remediations.OutcomeSelfRecovered}, w.outcomes())
			require.Equal(t, []string{"reboot:1", "restart-kubelet:1", "reboot:1"}, w.ended[0].Steps.Texts())
		})
	})
	for name, steps := range map[string][]string{"restart between": {"reboot", "restart-kubelet", "reboot"}, "drain between": {"reboot", "drain", "reboot"}} {
		t.Run(name+", and the second reboot cures", func(t *testing.T) {
			inWorld(t, planned(steps...), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 2); w.post("n0", remediations.StatusFiring) })
				w.pass(25 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Equal(t, []string{"reboot:1", steps[1] + ":1", "reboot:1"}, w.ended[0].Steps.Texts())
				require.Contains(t, w.ended[0].Why, "reboot:1 cured it")
			})
		})
	}
}

// TestACallThatWasWithheldCostsNoAttempt: a person pauses the node between the intent and the call.
// Drydock has sent nothing, so the repair continues with its first attempt when the pause ends.
func TestACallThatWasWithheldCostsNoAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		holds, lets func(w *world)
		slow        time.Duration
		reason      remediations.Reason
	}{
		"paused":      {func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, func(w *world) { w.unhold("n0") }, 0, remediations.ReasonPaused},
		"excluded":    {func(w *world) { w.hold("n0", func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }) }, func(w *world) { w.unhold("n0") }, 0, remediations.ReasonExcluded},
		"break-glass": {func(w *world) { w.breakGlass("n0") }, func(w *world) { w.unhold("n0") }, 0, remediations.ReasonPaused},
		"an autoscaler": {
			func(w *world) { w.edit("n0", func(n *corev1.Node) { w.leaving(n, true) }) },
			func(w *world) { w.edit("n0", func(n *corev1.Node) { w.leaving(n, false) }) }, 0, remediations.ReasonNodeLeaving,
		},
		"a mark of the configuration": {
			func(w *world) { w.edit("n0", func(n *corev1.Node) { n.Labels["example.com/frozen"] = "yes" }) },
			func(w *world) { w.edit("n0", func(n *corev1.Node) { delete(n.Labels, "example.com/frozen") }) }, 0, remediations.ReasonNodeLeaving,
		},
		"the API server is silent": {func(w *world) { w.always["node"] = "lost" }, func(w *world) { clear(w.always) }, 0, remediations.ReasonBlind},
		"the provider is slow":     {func(*world) {}, func(w *world) { w.mood.before = 0 }, 10 * time.Second, remediations.ReasonCallWithheld},
		"the witness says well":    {func(w *world) { w.heal("n0"); w.forge("n0") }, func(w *world) { w.heal("n0"); w.ail("n0", 1) }, 0, remediations.ReasonNotWitnessed},
	} {
		t.Run(name, func(t *testing.T) {
			config := planned("reboot")
			config.HoldWhen = append(marks.Shipped(), marks.Mark{Kind: marks.Label, Key: "example.com/frozen", By: "us", Means: "hands off"})
			inWorld(t, config, 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.mood.before = 2*time.Second + c.slow
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseActing }))
				w.do(func() { c.holds(w) })
				require.True(t, w.until(20*time.Second, func() bool { return w.record("n0").Phase == remediations.PhasePending }))
				require.Equal(t, c.reason, w.recordOf("n0").Hold.Reason)
				require.Contains(t, w.recordOf("n0").Hold.Message, "nothing was done: ")
				if name == "paused" {
					w.pass(time.Second)
					require.Empty(t, w.slots(t), "its slot is free at once, and not only when a sweep finds it")
				}
				w.pass(40 * time.Minute)
				require.Zero(t, w.callCount())
				require.NotEqual(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
				require.Empty(t, w.outcomes())
				require.False(t, w.nodeOf("n0").Spec.Unschedulable)
				if name == "paused" {
					require.Equal(t, remediations.ReasonPaused, w.recordOf("n0").Hold.Reason)
					require.Empty(t, w.slots(t))
				}
				w.do(func() { c.lets(w) })
				w.pass(10 * time.Minute)
				require.Equal(t, 1, w.callCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				require.Equal(t, []string{"reboot:1"}, w.ended[0].Steps.Texts())
			})
		})
	}
}

// TestARefusalOfTheProviderIsAnAttempt: Drydock allowed the call. That a call was withheld is known
// only to its own process.
func TestARefusalOfTheProviderIsAnAttempt(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
			w.start()
			w.do(func() { w.mood.refuse = true; w.ail("n0", 1) })
			w.pass(20 * time.Minute)
			require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
		})
	})
	t.Run("its process died", func(t *testing.T) {
		inWorld(t, planned("reboot"), 6, func(t *testing.T, w *world) {
			first := w.start()
			w.do(func() { w.mood.before = 20 * time.Second; w.ail("n0", 1) })
			require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseActing }))
			w.do(func() { first.dead = true })
			w.pass(15 * time.Second)
			w.start()
			w.pass(20 * time.Minute)
			require.Zero(t, w.callCount())
			require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.outcomes())
		})
	})
}

// TestAnUncordonAfterTheDrainEndsTheRepair: pods are back on the node, and the machine under them
// is not replaced. Without the uncordon it is.
func TestAnUncordonAfterTheDrainEndsTheRepair(t *testing.T) {
	for name, uncordons := range map[string]bool{"somebody uncordons it": true, "nobody does": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.during(t, "drain")
				w.do(func() { w.mood.trouble = "the provider is asked again later" })
				require.True(t, w.until(5*time.Minute, func() bool {
					r := w.record("n0")
					return r.Phase == remediations.PhasePending && r.Step.Name == "replace"
				}))
				w.do(func() {
					if uncordons {
						w.machines["n0"].cordonedBy, w.machines["n0"].pods.left = "", 50
						w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
					}
				})
				w.pass(time.Minute)
				w.do(func() { w.mood.trouble = "" })
				w.pass(30 * time.Minute)
				if uncordons {
					require.Equal(t, []string{"reboot"}, w.callsOf())
					require.Equal(t, remediations.OutcomeCancelled, w.ended[0].Outcome)
					require.Equal(t, remediations.ByPerson, w.ended[0].By)
					require.Contains(t, w.ended[0].Why, "the node was uncordoned after its drain")
					require.Len(t, w.outcomes(), 1, "nothing begins again for the same alert")
				} else {
					require.Equal(t, []string{"reboot", "replace"}, w.callsOf())
				}
			})
		})
	}
	t.Run("at the last moment", func(t *testing.T) {
		inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
			w.during(t, "drain")
			w.do(func() { w.mood.before = 3 * time.Second })
			require.True(t, w.until(5*time.Minute, func() bool {
				r := w.record("n0")
				return r.Phase == remediations.PhaseActing && r.Step.Name == "replace"
			}))
			w.do(func() {
				w.machines["n0"].cordonedBy = ""
				w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			})
			w.pass(10 * time.Minute)
			require.Equal(t, []string{"reboot"}, w.callsOf())
			require.Equal(t, []remediations.Outcome{remediations.OutcomeCancelled}, w.outcomes())
		})
	})
}
