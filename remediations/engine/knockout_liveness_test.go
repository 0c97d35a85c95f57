package engine

import (
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// livenessKnockOuts are the statements of the liveness clause. Each scenario removes something that
// the engine does at the end of a fault, and the clause must report what is left over.
func livenessKnockOuts() map[string]knockOut {
	// calm runs a fault, a storm or nothing, and then the calm.
	calm := func(tale func(t *testing.T, w *world)) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			tale(t, w)
			w.pass(10 * time.Minute)
			w.live()
		}
	}
	held := func(t *testing.T, w *world) {
		after(func(w *world) { w.machines["n0"].silenced = true })(t, w)
		w.do(func() { w.machines["n0"].silenced = false; w.heal("n0") })
	}
	never := func(h *hands, which func(s *lifecycle.State, d *lifecycle.Decision) bool) {
		h.decision(func(s *lifecycle.State, d *lifecycle.Decision) {
			if which(s, d) {
				*d = lifecycle.Decision{Verb: lifecycle.VerbWait}
			}
		})
	}
	return map[string]knockOut{
		"liveness: what was held ends when its alert is over": {
			take: func(h *hands) {
				never(h, func(_ *lifecycle.State, d *lifecycle.Decision) bool { return d.Verb == lifecycle.VerbDrop })
			},
			tale: calm(held), speaks: "liveness: n0 has a repair left over",
		},
		"liveness: a repair ends": {
			take: func(h *hands) {
				never(h, func(_ *lifecycle.State, d *lifecycle.Decision) bool { return d.Verb == lifecycle.VerbEnd })
				h.w.in(4*time.Minute, func() { // otherwise its slot would be reported as left over, and not its record
					h.w.lies.forgetSlots, h.w.ledger["slots"] = true, "[]"
				})
			},
			tale: calm(func(t *testing.T, w *world) { sickNode(t, w) }), speaks: "liveness: n0 has a repair left over",
		},
		"liveness: its slot is freed": {
			take: func(h *hands) { h.w.lies.keepSlots = true },
			tale: calm(func(t *testing.T, w *world) { sickNode(t, w) }), speaks: "liveness: a slot is left over",
		},
		"liveness: a breaker closes": {
			take: func(h *hands) {
				h.w.in(2*time.Minute, func() { h.w.replicas = [2]replicaState{{dead: true}, {dead: true}} })
			},
			tale: calm(func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					for _, n := range nodeNames[:4] {
						w.breakDown(n, 9)
						w.post(n, remediations.StatusFiring)
					}
				})
				w.untilBreaker(t, ledger.BreakerOpen, time.Minute)
				w.pass(2 * time.Minute)
				w.do(func() { w.quiet(nodeNames[:4]...) })
			}), speaks: "liveness: the breaker of cluster is open",
		},
		"liveness: a would-be repair frees its place": {
			config: func(c *remediations.Config) { c.Policies[0].Mode = remediations.ModeObserve },
			take: func(h *hands) {
				never(h, func(s *lifecycle.State, d *lifecycle.Decision) bool {
					return d.Verb == lifecycle.VerbEnd && d.Ended.Outcome == remediations.OutcomeObserved && s.Node.Name == "n5"
				})
			},
			tale: calm(func(_ *testing.T, w *world) { w.start() }), speaks: "liveness: the would-be repair of n5 keeps its place",
		},
		"liveness: what was observed holds no repair": {
			config: func(c *remediations.Config) { c.Policies[0].Mode = remediations.ModeObserve },
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) { // as if it had been done
					s.Journal.History = slices.Clone(s.Journal.History)
					for i, e := range s.Journal.History {
						if e.Outcome == remediations.OutcomeObserved {
							s.Journal.History[i].Steps, s.Journal.History[i].By = remediations.Attempts{e.Would.Step}, remediations.ByPerson
						}
					}
				})
			},
			tale: calm(func(_ *testing.T, w *world) { w.start() }), speaks: "liveness: the fresh fault of n5 is not repaired",
		},
		"liveness: a fresh fault is repaired": {
			take: func(h *hands) {
				never(h, func(s *lifecycle.State, d *lifecycle.Decision) bool {
					return d.Verb == lifecycle.VerbIssue && s.Node.Name == "n5"
				})
			},
			tale: calm(func(t *testing.T, w *world) { sickNode(t, w) }), speaks: "liveness: the fresh fault of n5 is not repaired",
		},
	}
}
