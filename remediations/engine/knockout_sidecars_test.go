package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// sidecar gives sidecar.Decide a changed state.
func (h *hands) sidecar(change func(*sidecar.State)) {
	h.w.core.decideSidecar = func(s *sidecar.State, now time.Time) lifecycle.Decision {
		c, state := *s, *s.State
		c.State = &state
		change(&c)
		return sidecar.Decide(&c, now)
	}
}

// sighting gives sidecar.Decide another observation of the sidecar.
func (h *hands) sighting(change func(*sidecar.State, *sidecar.Observation)) {
	h.sidecar(func(s *sidecar.State) {
		if s.Seen != nil {
			g := *s.Seen
			change(s, &g)
			s.Seen = &g
		}
	})
}

// sidecarPolicy gives sidecar.Decide another policy.
func (h *hands) sidecarPolicy(change func(*remediations.Config, *remediations.Policy)) {
	h.sidecar(func(s *sidecar.State) {
		c := *s.Config
		c.Policies = slices.Clone(c.Policies)
		p := *c.Policies[1]
		p.Plan = slices.Clone(p.Plan)
		c.Policies[1] = &p
		change(&c, &p)
		s.Config = &c
	})
}

// gateCloses is the simplest scenario: the gate of a pod on n0 closes, and one approval would open
// it. first prepares the world, and then is what happens in between.
func gateCloses(first func(w *world, g *gated), then ...func(w *world, g *gated)) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		g := w.host(podName(0), "n0")
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { g.close(); first(w, g); w.postPod(g.name) })
		w.pass(20 * time.Second)
		for _, f := range then {
			w.do(func() { f(w, g) })
			w.pass(30 * time.Second)
		}
		w.pass(4 * time.Minute)
	}
}

func sidecarsToo(c *remediations.Config) { withSidecars(c) }

func wedged(_ *world, g *gated) { g.wedged = true }

// sidecarKnockOuts are the clauses that protect a sidecar from the engine.
func sidecarKnockOuts() map[string]knockOut {
	all := map[string]knockOut{
		"1: observe mode approves nothing": {
			config: func(c *remediations.Config) { withSidecars(c).Policies[1].Mode = remediations.ModeObserve },
			take:   func(h *hands) { h.sidecarPolicy(enforcing) }, tale: gateCloses(wedged), speaks: "1: an intent for a sidecar",
		},
		"2: a node's repair excludes its sidecars'": {
			take:   func(h *hands) { h.sidecar(func(s *sidecar.State) { s.Journal.Record = nil }) },
			speaks: "2: an intent for a sidecar on n0, which is under repair",
			tale: func(_ *testing.T, w *world) {
				w.host(podName(0), "n0")
				w.start()
				w.do(func() { w.ail("n0", 1) })
				w.pass(3 * time.Minute)
			},
		},
		"2: nor does one begin when the approval has yet to leave": {
			take: func(h *hands) {
				h.w.core.mayStillRepair = func(*remediations.Config, *corev1.Node, string, string) error { return nil }
			}, speaks: "2: an approval of",
			tale: func(_ *testing.T, w *world) {
				w.host(podName(0), "n0")
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.gates.mood.before = 5 * time.Second; w.closeOn("n0") })
				w.until(time.Minute, func() bool { return len(w.sidecarRecords()) == 1 })
				w.do(func() {
					w.edit("n0", func(n *corev1.Node) { n.Annotations[remediations.NodeRepairKey] = nodeUnderRepair })
				})
				w.pass(20 * time.Second)
			},
		},
		"2: of two engines one approves": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.ignoreNodeVersion = true }) }, speaks: "2: the repair",
			tale: func(_ *testing.T, w *world) {
				g := w.host(podName(0), "n0")
				first := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					first.stall, first.stallAt = 5*time.Second, "write n0 sidecar Acting"
					g.wedged = true
					g.close()
					w.postPod(g.name)
				})
				w.pass(time.Second)
				w.start()
				w.pass(5 * time.Minute)
			},
		},
	}
	maps.Copy(all, approvalKnockOuts())
	maps.Copy(all, podKnockOuts())
	maps.Copy(all, turnKnockOuts())
	for name, k := range all {
		if k.config == nil {
			k.config = sidecarsToo
			all[name] = k
		}
	}
	return all
}

const nodeUnderRepair = `{"v":1,"id":"s1","policy":"node-not-ready","cause":{"alert":"a"},"phase":"Verifying","step":{"index":0,"name":"reboot","attempt":1},` +
	`"began":"2000-01-01T00:00:00Z","since":"2000-01-01T00:00:00Z","deadline":"2000-01-01T12:00:00Z","intent":{"id":"s1-0-1","at":"2000-01-01T00:00:00Z"}}`

// approvalKnockOuts are the conditions before a task is sent: invariants 4, 5 and 9.
func approvalKnockOuts() map[string]knockOut {
	slow := func(w *world, _ *gated) { w.gates.mood.before = 30 * time.Second }
	return map[string]knockOut{
		"4: the task is on record before the approval": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.forgetIntents, h.w.lies.neverAsk = true, true }) },
			tale: gateCloses(wedged), speaks: "4: an approval of",
		},
		"4: a task without an outcome counts as posted": {
			take: func(h *hands) {
				h.w.core.decideSidecar = func(s *sidecar.State, now time.Time) lifecycle.Decision {
					if r := s.Record; r != nil && r.Phase == remediations.PhaseActing && s.Call == nil {
						return lifecycle.Decision{Verb: lifecycle.VerbIssue, Record: r, Policy: s.Config.Policies[1]}
					}
					return sidecar.Decide(s, now)
				}
			},
			speaks: "4: the task",
			tale: func(_ *testing.T, w *world) {
				g := w.host(podName(0), "n0")
				w.start()
				w.do(func() { w.gates.mood.after = 20 * time.Second; g.wedged = true; g.close() })
				w.until(time.Minute, func() bool { return len(w.gates.approvals) == 1 })
				w.do(func() { w.instances[0].dead = true })
				w.pass(8 * time.Second)
				w.start()
				w.pass(time.Minute)
			},
		},
		"4: an approval goes out within ten seconds of its intent": {
			take: func(h *hands) { h.w.core.intentGood = time.Hour }, tale: gateCloses(slow), speaks: "4: the approval of",
		},
		"4: the sidecars' port asks at the last moment": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.neverAsk = true }) }, tale: gateCloses(slow), speaks: "4: the approval of",
		},
		"4: each attempt has a task of its own": {
			take: func(h *hands) { h.sidecar(func(s *sidecar.State) { s.NewTask = "the same" }) },
			tale: gateCloses(wedged), speaks: "4: the task",
		},
		"5: no approval under a silence": {
			take: func(h *hands) {
				h.sidecar(func(s *sidecar.State) {
					hear(s.State, everyAlert(func(a *alerts.Alert) { a.SilencedBy, a.Active = nil, true }))
				})
			},
			tale: gateCloses(func(_ *world, g *gated) { g.silenced = true }), speaks: "5: an approval of",
		},
		"5: nor of an alert that is forged": {
			take: func(h *hands) {
				h.sidecar(func(s *sidecar.State) {
					hear(s.State, func(_ int, s *lifecycle.State, r *alerts.Replica) {
						for _, a := range s.Journal.Alerts {
							r.Alerts[a.Fingerprint] = alerts.Alert{Active: true, Receivers: []string{"drydock"}}
						}
					})
				})
			},
			tale: gateCloses(func(_ *world, g *gated) { g.quiet = true }), speaks: "5: an approval of",
		},
		"9: a pause holds sidecars": {
			take: func(h *hands) {
				h.sidecar(func(s *sidecar.State) {
					s.Node = s.Node.DeepCopy()
					delete(s.Node.Annotations, remediations.PauseKey)
				})
			},
			tale: gateCloses(func(w *world, _ *gated) { w.hold("n0", edit(remediations.PauseKey, "true")) }), speaks: "9: an intent for a sidecar",
		},
		"9: also between the intent and the approval": {
			take: func(h *hands) {
				h.w.core.mayStillRepair = func(*remediations.Config, *corev1.Node, string, string) error { return nil }
			}, speaks: "9: an approval of",
			tale: func(_ *testing.T, w *world) {
				g := w.host(podName(0), "n0")
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.gates.mood.before = 5 * time.Second; g.close() })
				w.until(time.Minute, func() bool { return len(w.sidecarRecords()) == 1 })
				w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")) })
				w.pass(time.Minute)
			},
		},
	}
}
