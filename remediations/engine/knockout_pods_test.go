package engine

import (
	"maps"
	"testing"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// podKnockOuts are the knock-outs of the conditions about the pod (S0, and invariant 7).
func podKnockOuts() map[string]knockOut {
	quietly := func(_ *world, g *gated) { g.silenced = true }
	aloud := func(_ *world, g *gated) { g.silenced = false }
	return map[string]knockOut{
		"S0-16: what its owner holds is held": {
			take: func(h *hands) {
				h.sighting(func(_ *sidecar.State, g *sidecar.Observation) { g.Held = "" })
			},
			tale: gateCloses(func(_ *world, g *gated) { g.silenced = true; g.hold("SeiNode is paused") }, aloud), speaks: "S0-16: an intent",
		},
		"S0-16: a gate that somebody closed stays closed": {
			take: func(h *hands) {
				h.sighting(func(_ *sidecar.State, g *sidecar.Observation) { g.StartedAt = time.Now() })
			},
			tale: gateCloses(func(_ *world, g *gated) { g.silenced = true; g.letGo(); g.closeByHand() }, aloud), speaks: "S0-16: an intent for the sidecar of p00-0, which somebody closed",
		},
		"S0-2: 503 alone": {
			take: func(h *hands) {
				h.sighting(func(_ *sidecar.State, g *sidecar.Observation) { g.Health = sidecar.HealthNotReady })
			},
			tale: gateCloses(quietly, func(_ *world, g *gated) { g.hide(true) }, aloud), speaks: "S0-2: an intent",
		},
		"S0: the pod is here": {
			take: func(h *hands) {
				h.sighting(func(s *sidecar.State, g *sidecar.Observation) { g.Node = s.Node.Name })
			},
			tale: gateCloses(quietly, func(w *world, g *gated) { w.replacePod(g.name, "n3") }, aloud), speaks: "S0: an intent for a sidecar on n0",
		},
		"7: Recovered is 200": {
			take: func(h *hands) {
				h.sighting(func(s *sidecar.State, g *sidecar.Observation) {
					if s.Record != nil && s.Record.Phase == remediations.PhaseVerifying {
						g.Health = sidecar.HealthReady
					}
				})
			},
			tale: gateCloses(func(w *world, g *gated) { g.wedged, g.since = true, g.since.Add(-time.Minute) }), speaks: "7: Recovered of the sidecar",
		},
		"7: of the pod that was approved": {
			take: func(h *hands) {
				h.sighting(func(s *sidecar.State, g *sidecar.Observation) {
					if s.Record != nil {
						g.Pod.UID = s.Record.Pod.UID
						if s.Record.Intent != nil {
							g.StartedAt = s.Record.Intent.Started
						}
					}
				})
			},
			tale:   gateCloses(wedged, func(w *world, g *gated) { w.replacePod(g.name, "n0"); g.hide(true); g.letGo() }, func(_ *world, g *gated) { g.hide(false) }),
			speaks: "7: Recovered of the sidecar",
		},
	}
}

// turnKnockOuts limit how many approvals are made, how often and how fast.
func turnKnockOuts() map[string]knockOut {
	threeClose := func(nodes ...string) func(*testing.T, *world) {
		return func(_ *testing.T, w *world) {
			for i, n := range nodes {
				w.host(podName(i), n).wedged = true
			}
			w.gates.mood.after = 3 * time.Second
			w.start()
			w.pass(16 * time.Second)
			w.do(func() {
				for i := range nodes {
					w.pod(podName(i)).close()
					w.postPod(podName(i))
				}
			})
			w.pass(20 * time.Second)
		}
	}
	return map[string]knockOut{
		"S0: at most limits.sidecars.concurrent": {
			config: func(c *remediations.Config) { withSidecars(c).Limits.Sidecars = 1 },
			take:   func(h *hands) { h.sidecar(func(s *sidecar.State) { s.Busy = 0 }) }, tale: threeClose("n0", "n1", "n2"), speaks: "S0: 2 sidecars",
		},
		"S0: one after the other on a node": {
			take: func(h *hands) {
				h.sidecar(func(s *sidecar.State) {
					s.Journal.Records = maps.Clone(s.Journal.Records)
					maps.DeleteFunc(s.Journal.Records, func(k string, _ *remediations.Record) bool { return k != s.Key })
				})
			},
			tale: threeClose("n0", "n0", "n0"), speaks: "S0: two sidecars",
		},
		"S0: so many attempts, and no more": {
			take: func(h *hands) {
				h.sidecarPolicy(func(_ *remediations.Config, p *remediations.Policy) { p.Plan[0].Attempts = 99 })
			},
			tale: gateCloses(wedged), speaks: "S0: the intent",
		},
		"S0-7: thirty seconds between two": {
			take: func(h *hands) {
				h.sidecar(func(s *sidecar.State) {
					if s.Record == nil || s.Record.Phase != remediations.PhaseVerifying {
						return
					}
					r, i := *s.Record, *s.Record.Intent
					i.At = i.At.Add(-time.Minute)
					r.Intent, r.Deadline = &i, r.Deadline.Add(-time.Minute)
					s.Record = &r
				})
			},
			tale: gateCloses(wedged), speaks: "S0-7: the intent",
		},
	}
}
