package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// outOfService reports whether the Node has the taint.
func (w *world) outOfService(name string) bool {
	n := w.nodes[name]
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == remediations.OutOfServiceTaint })
}

// podConfig restarts a pod of the node, then replaces the machine.
func podConfig(step string) *remediations.Config {
	c := modelConfig()
	c.Policies[0].Plan = []remediations.Step{{Name: step, Wait: 5 * time.Minute, Attempts: 1}, {Name: "replace", Wait: 15 * time.Minute, Attempts: 1}}
	c.Provided[step], c.Provided["replace"] = true, true
	return c
}

// TestAPodThatIsGoneSaysNothingAboutItsMachine: neither the new pod nor the node is Ready, but the
// machine runs, with its volumes. The control is the replacement of the same machine.
func TestAPodThatIsGoneSaysNothingAboutItsMachine(t *testing.T) {
	for _, step := range podSteps {
		t.Run(step, func(t *testing.T) {
			inWorld(t, podConfig(step), 6, func(t *testing.T, w *world) {
				w.do(func() { w.recycling.nodeGoes, w.recycling.joins = 0, 0 })
				w.during(t, step)
				w.pass(4 * time.Minute)
				require.Equal(t, step, w.recordOf("n0").Step.Name)
				require.Contains(t, w.last().log, "act n0")
				require.False(t, at(w, func() bool { return w.outOfService("n0") }))
				require.True(t, w.until(10*time.Minute, func() bool { return w.outOfService("n0") }), "the machine is gone by then")
				require.Equal(t, []string{step, "replace"}, w.callsOf())
			})
		})
	}
}

// TestTheOutOfServiceTaintWaitsForHoldsAndForEnforce: the taint overrides no person's hold, and no
// mode that only observes. When the hold ends, the taint is set.
func TestTheOutOfServiceTaintWaitsForHoldsAndForEnforce(t *testing.T) {
	mode := func(m remediations.Mode) func(*world) {
		return func(w *world) {
			c, p := *w.config, *w.config.Policies[0]
			p.Mode, c.Policies = m, []*remediations.Policy{&p}
			w.restart(&c)
		}
	}
	word := func(change func(*world)) func(*world) { return func(w *world) { w.do(func() { change(w) }) } }
	unhold := word(func(w *world) { w.unhold("n0") })
	autoscaler := func(takes bool) func(*world) {
		return word(func(w *world) { w.edit("n0", func(n *corev1.Node) { w.leaving(n, takes) }) })
	}
	for name, c := range map[string]struct {
		begins, ends func(*world)
	}{
		"paused":      {word(func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }), unhold},
		"excluded":    {word(func(w *world) { w.hold("n0", func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }) }), unhold},
		"break-glass": {word(func(w *world) { w.breakGlass("n0") }), unhold},
		"silenced":    {word(func(w *world) { w.machines["n0"].silenced = true }), word(func(w *world) { w.machines["n0"].silenced = false })},
		"autoscaler":  {autoscaler(true), autoscaler(false)},
		"observe":     {mode(remediations.ModeObserve), mode(remediations.ModeEnforce)},
		"off":         {mode(remediations.ModeOff), mode(remediations.ModeEnforce)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, wholeConfig(), 6, func(t *testing.T, w *world) {
				w.do(func() { w.recycling.nodeGoes, w.recycling.joins = 0, 0 })
				w.during(t, "replace")
				c.begins(w)
				w.pass(5 * time.Minute)
				require.Equal(t, 2, w.callCount())
				require.True(t, at(w, func() bool { return w.off("civo://m0") }), "the machine is gone")
				require.False(t, at(w, func() bool { return w.outOfService("n0") }))
				c.ends(w)
				require.True(t, w.until(3*time.Minute, func() bool { return w.outOfService("n0") }))
			})
		})
	}
}

// TestAnswersAreForgottenWithANewIntent: answers about one attempt are no longer known when the
// next one begins.
func TestAnswersAreForgottenWithANewIntent(t *testing.T) {
	c := podConfig("restart-cni")
	c.Policies[0].Plan[1].Name = "reboot"
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.during(t, "restart-cni")
		w.pass(time.Minute)
		require.NotNil(t, w.last().engine.memory["n0"].pods, "the control")
		require.True(t, w.until(10*time.Minute, func() bool { return len(w.calls) == 2 }))
		require.Nil(t, w.last().engine.memory["n0"].pods)
	})
}
