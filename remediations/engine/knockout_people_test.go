package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

// betweenAttempts is a repair whose first reboot does not help, and what happens then.
func betweenAttempts(then func(w *world)) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 2) })
		w.until(time.Minute, func() bool { return len(w.calls) == 1 })
		w.do(func() { then(w) })
		w.pass(20 * time.Minute)
	}
}

func cancel(w *world) {
	id := w.record("n0").ID
	w.cancelled[id] = time.Now()
	w.edit("n0", edit(remediations.CancelKey, id))
}

// peopleKnockOuts are the knock-outs of what people may write except a pause: requests, cancel,
// break-glass.
func peopleKnockOuts() map[string]knockOut {
	asked := func(first func(w *world)) func(*testing.T, *world) {
		return func(_ *testing.T, w *world) {
			w.start()
			w.do(func() { w.ail("n0", 1); first(w) })
			w.pass(46 * time.Second) // longer than the first answers are valid: they may be older
			w.do(func() { w.edit("n0", edit(remediations.RequestKey, "reboot")) })
			w.pass(5 * time.Minute)
		}
	}
	return map[string]knockOut{
		"9: cancel in mid-repair": {
			take:   func(h *hands) { h.node(func(n *corev1.Node) { delete(n.Annotations, remediations.CancelKey) }) },
			tale:   betweenAttempts(cancel),
			speaks: "9: an intent of the repair",
		},
		"9: cancel stands until the call is over": {
			take: func(h *hands) {
				h.decision(func(s *lifecycle.State, d *lifecycle.Decision) {
					if r := s.Journal.Record; r != nil && r.Phase == remediations.PhaseActing {
						d.Consume = append(d.Consume, remediations.CancelKey)
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.mood.after = 5 * time.Second; w.ail("n0", 2) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.do(func() { cancel(w) })
				w.pass(20 * time.Minute)
			},
			speaks: "9: an intent of the repair",
		},
		"9: break-glass holds for its hour": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					if s.Ledger != nil && s.Ledger.Status.BreakGlass != nil {
						l := s.Ledger.Clone()
						for n, g := range l.Status.BreakGlass {
							l.Status.BreakGlass[n] = ledger.BreakGlass{Since: now.Add(-2 * time.Hour), Why: g.Why}
						}
						s.Ledger = l
					}
				})
			},
			tale: after(func(w *world) { w.breakGlass("n0") }), speaks: "9: break-glass",
		},
		"9: no clock that is wrong mends it": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					s.Heartbeats = &signs.Heartbeats{ReadAt: now, Nodes: 6}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.breakGlass("n0") })
				w.pass(time.Minute)
				w.do(w.last().cancel)
				w.pass(6 * time.Second)
				w.startWith(w.config, 2*time.Hour)
				w.pass(time.Minute)
			},
			speaks: "9: break-glass",
		},
		"5: a silence holds a request": {
			take: func(h *hands) { h.word(everyAlert(active)) }, tale: asked(silence), speaks: "5: a call for n0",
		},
		"5: an inhibition holds a request": {
			take: func(h *hands) { h.word(everyAlert(active)) }, tale: asked(func(w *world) { w.machines["n0"].inhibited = true }), speaks: "5: a call for n0",
		},
		"1: a request in observe mode": {
			config: func(c *remediations.Config) { c.Policies[0].Mode = remediations.ModeObserve },
			take: func(h *hands) {
				h.config(func(c *remediations.Config, p *remediations.Policy) { p.Mode = remediations.ModeEnforce })
			},
			tale: asked(func(*world) {}), speaks: "1: an intent in observe mode",
		},
	}
}
