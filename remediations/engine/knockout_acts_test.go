package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// sidecarUnderRepair is another target's record on the Node.
const sidecarUnderRepair = `{"v":1,"id":"s1","policy":"p","cause":{"alert":"a"},"pod":{"namespace":"sei","name":"a-0","uid":"u"},"phase":"Verifying","step":{"index":0,"name":"mark-ready","attempt":1},` +
	`"began":"2000-01-01T00:00:00Z","since":"2000-01-01T00:00:00Z","deadline":"2000-01-01T23:00:00Z","intent":{"id":"s1-0-1","at":"2000-01-01T00:00:00Z"}}`

func enforcing(_ *remediations.Config, p *remediations.Policy) { p.Mode = remediations.ModeEnforce }

// actKnockOuts are the knock-outs of invariants 1, 2 and 4.
func actKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"1: observe mode does nothing": {
			config: func(c *remediations.Config) { c.Policies[0].Mode = remediations.ModeObserve },
			take:   func(h *hands) { h.config(enforcing) }, tale: sickNode, speaks: "1: an intent in observe mode",
		},
		"1: nor does it cordon": {
			config: func(c *remediations.Config) { c.Policies[0].Plan[0].Attempts = 1 },
			take:   func(h *hands) { h.config(enforcing) }, speaks: "1: cordoned",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 9) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				observe := *w.config
				p := *observe.Policies[0]
				p.Mode, observe.Policies = remediations.ModeObserve, []*remediations.Policy{&p}
				w.restart(&observe)
				w.pass(30 * time.Minute)
			},
		},
		"2: a sidecar's repair excludes the node's": {
			take:   func(h *hands) { h.state(func(s *lifecycle.State, _ time.Time) { s.Journal.OtherRepairs = nil }) },
			speaks: "2: an intent on n0, where a sidecar's",
			tale: after(func(w *world) {
				w.edit("n0", func(n *corev1.Node) { n.Annotations[podKey("a-0")] = sidecarUnderRepair })
			}),
		},
		"2: of two engines one begins on a node": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.ignoreNodeVersion = true }) }, speaks: "2: the repair",
			tale: func(_ *testing.T, w *world) {
				first := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					first.stall, first.stallAt = 5*time.Second, "write n0 Acting"
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(time.Second) // it has the slot, and sleeps before it writes the intent
				w.start()
				w.pass(5 * time.Minute)
			},
		},
		"4: the intent is on record before the call": {
			take: func(h *hands) {
				h.w.do(func() { h.w.lies.forgetIntents, h.w.lies.neverAsk = true, true })
			},
			tale: sickNode, speaks: "4: a call for n0, which has no intent",
		},
		"4: an intent without an outcome counts as issued": {
			take: func(h *hands) {
				callsAgain(h)
				h.decision(func(s *lifecycle.State, d *lifecycle.Decision) {
					if r := s.Journal.Record; r != nil && r.Phase == remediations.PhaseActing && s.Call == nil {
						*d = lifecycle.Decision{Verb: lifecycle.VerbIssue, Record: r, Policy: s.Config.Policies[0]}
					}
				})
			},
			speaks: "4: the intent",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.mood.after = 20 * time.Second; w.ail("n0", 1) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.do(func() { w.instances[0].dead = true })
				w.pass(15 * time.Second)
				w.start()
				w.pass(time.Minute)
			},
		},
		"4: a call goes out within ten seconds of its intent": {
			take: func(h *hands) { h.w.core.intentGood = time.Hour }, speaks: "4: the call for r",
			tale: after(func(w *world) { w.mood.before = 30 * time.Second }),
		},
		"4: the actuator asks at the last moment": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.neverAsk = true }) }, speaks: "4: the call for r",
			tale: after(func(w *world) { w.mood.before = 30 * time.Second }),
		},
	}
}
