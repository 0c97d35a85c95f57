package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
)

// forge makes Alertmanager report a fault of a healthy machine. Any client that reaches
// Alertmanager, or whose metrics are scraped, can do that.
func (w *world) forge(name string) {
	if m := w.machines[name]; m != nil {
		m.stuck = true
		w.post(name, remediations.StatusFiring)
	}
}

// unwitnessed makes policies act on alerts alone.
func unwitnessed(h *hands) {
	h.config(func(_ *remediations.Config, p *remediations.Policy) { p.Witness = &signs.Witness{None: true} })
	h.w.core.mayStillAct = func(_ *remediations.Config, n *corev1.Node, intent string, _ []signs.Sign, _ map[signs.Sign]signs.Testimony) error {
		return node.MayStillAct(modelConfig(), n, intent, nil, nil)
	}
}

// witnessKnockOuts are the knock-outs of the second witness, a part of invariants 5 and 7.
func witnessKnockOuts() map[string]knockOut {
	const unfounded = "5: a call for n0, and its Node shows no fault"
	return map[string]knockOut{
		"5: the node itself shows the fault": {
			take: unwitnessed, speaks: unfounded,
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.forge("n0") })
				w.pass(5 * time.Minute)
			},
		},
		"5: and still does when the call leaves": {
			take: func(h *hands) {
				h.w.core.mayStillAct = func(_ *remediations.Config, n *corev1.Node, intent string, _ []signs.Sign, _ map[signs.Sign]signs.Testimony) error {
					return node.MayStillAct(modelConfig(), n, intent, nil, nil)
				}
			},
			speaks: unfounded,
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.mood.before = 5 * time.Second; w.breakDown("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.until(5*time.Second, func() bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseActing })
				w.do(func() { w.heal("n0"); w.forge("n0") })
				w.pass(time.Minute)
			},
		},
		"5: and before each further attempt": {
			take: unwitnessed, speaks: unfounded,
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.mood.idle = true; w.ail("n0", 1) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.do(func() { w.heal("n0"); w.forge("n0") })
				w.pass(15 * time.Minute)
			},
		},
		"7: the fault itself is gone, and not only its alert": {
			take: unwitnessed, speaks: "7: Recovered of n0, which is as broken as before",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.breakDown("n0", 9) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.do(func() { w.machines["n0"].lapsed = true })
				w.pass(9 * time.Minute)
			},
		},
	}
}
