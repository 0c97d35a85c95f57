package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

func repairCordoned(c *remediations.Config) { c.Policies[0].RepairCordoned = true }

func cordonedByAPerson(w *world) {
	w.machines["n0"].cordonedBy = "a person"
	w.edit("n0", func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

// exhausted is the scenario of a node that nothing cures.
func exhausted(_ *testing.T, w *world) {
	w.start()
	w.do(func() { w.ail("n0", 9) })
	w.pass(30 * time.Minute)
}

// traceKnockOuts are the knock-outs of invariants 8, 10 and 11.
func traceKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"8: only Drydock's own cordon is undone": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.ownsEveryCordon = true }) }, speaks: "8: took back the cordon",
			tale: func(t *testing.T, w *world) {
				exhausted(t, w)
				w.do(func() {
					w.machines["n0"].cordonedBy = "a person"
					w.edit("n0", edit(remediations.ResetKey, "true"))
				})
				w.pass(time.Minute)
			},
		},
		"8: only Drydock's own announcement is taken off": {
			config: announced, take: func(h *hands) { h.w.do(func() { h.w.lies.ownsEveryAnnouncement = true }) }, speaks: "8: took " + noScaleDown,
			tale: overwritten,
		},
		"8: announcements end with the repair": {
			config: announced, take: func(h *hands) {
				h.decision(func(_ *lifecycle.State, d *lifecycle.Decision) { d.Withdraw = nil })
			}, speaks: "8: the repair r", tale: overwritten,
		},
		"8: announcements are on the record": {
			config: announced, take: func(h *hands) {
				h.decision(func(_ *lifecycle.State, d *lifecycle.Decision) {
					if len(d.Announce) > 0 {
						d.Record.Undo = nil
					}
				})
			}, speaks: "8: set ", tale: overwritten,
		},
		"8: a person's cordon means hands off": {
			take: func(h *hands) {
				h.config(func(_ *remediations.Config, p *remediations.Policy) { p.RepairCordoned = true })
			},
			tale: after(cordonedByAPerson), speaks: "8: an intent on n0",
		},
		"8: a cordon that was there is not Drydock's": {
			config: repairCordoned, take: func(h *hands) { h.node(func(n *corev1.Node) { n.Spec.Unschedulable = false }) },
			speaks: "8: cordoned n0, which",
			tale: func(t *testing.T, w *world) {
				w.do(func() { cordonedByAPerson(w) })
				exhausted(t, w)
			},
		},
		"8: what Drydock did is on the record": {
			take: func(h *hands) {
				h.decision(func(_ *lifecycle.State, d *lifecycle.Decision) {
					if d.Cordon {
						d.Record.Undo = nil
					}
				})
			},
			tale: exhausted, speaks: "8: cordoned n0, and its record does not say so",
		},
		"10: a name is used only where a Node bears it": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.ghosts = true }) }, tale: sickNode, speaks: `10: the name "ghost"`,
		},
		"11: a Node carries so many alerts and no more": {
			take: func(h *hands) {
				h.w.admit = func(map[string]string, remediations.Alert) ([]string, bool) { return nil, true }
			},
			tale: after(func(w *world) { w.crowd = 100 }), speaks: "11: n0 carries",
		},
	}
}
