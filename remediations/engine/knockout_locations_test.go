package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
)

// leader gives location.Decide a changed state.
func (h *hands) leader(change func(*location.State)) {
	h.w.core.decideLocation = func(s *location.State, now time.Time) lifecycle.Decision {
		c, state := *s, *s.State
		c.State = &state
		change(&c)
		return location.Decide(&c, now)
	}
}

// leaderPolicy gives location.Decide another policy.
func (h *hands) leaderPolicy(change func(*remediations.Config, *remediations.Policy)) {
	h.leader(func(s *location.State) {
		c := *s.Config
		c.Policies = slices.Clone(c.Policies)
		p := *c.Policies[1]
		p.Plan = slices.Clone(p.Plan)
		c.Policies[1] = &p
		change(&c, &p)
		s.Config = &c
	})
}

// sightOf gives location.Decide another observation of the location.
func (h *hands) sightOf(change func(*location.State, *location.Observation)) {
	h.leader(func(s *location.State) {
		if s.Seen != nil {
			g := *s.Seen
			change(s, &g)
			s.Seen = &g
		}
	})
}

// relayFails is the simplest scenario: n0, which leads l0, relays nothing any more. first prepares
// the world, and then is what happens in between.
func relayFails(first func(w *world), then ...func(w *world)) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.do(w.spread)
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { first(w); w.darken("n0", true) })
		w.pass(50 * time.Second)
		for _, f := range then {
			w.do(func() { f(w) })
			w.pass(90 * time.Second)
		}
		w.pass(6 * time.Minute)
	}
}

func nothingFirst(*world) {}

func leadersToo(c *remediations.Config) { withLeaders(c) }

// blindPort makes the port of leaders not look again, so that only the engine can stop the move.
func blindPort(w *world) { w.mesh.blindly = true }

// leaderKnockOuts are the clauses that protect a location's leader from the engine.
func leaderKnockOuts() map[string]knockOut {
	all := map[string]knockOut{
		"1: observe mode moves no leader": {
			config: func(c *remediations.Config) { withLeaders(c).Policies[1].Mode = remediations.ModeObserve },
			take:   func(h *hands) { h.leaderPolicy(enforcing) }, tale: relayFails(nothingFirst), speaks: "1: an intent for a leader",
		},
		"2: a node's repair excludes its leadership's": {
			take: func(h *hands) {
				h.leader(func(s *location.State) { s.Journal.Record, s.Fleet = nil, noFleet(s) })
				h.w.do(func() { h.w.lies.dropLabels = true })
			},
			speaks: "2: an intent for the leader",
			tale: func(_ *testing.T, w *world) {
				w.do(w.spread)
				w.start()
				w.do(func() { w.machines["n1"].bootTakes = 5 * time.Minute; w.ail("n1", 1) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.do(func() {
					w.machines["n1"].up = true // Kilo's agent writes again, and the boot has not ended
					w.mesh.members["n2"].dark = true
					w.edit("n1", func(n *corev1.Node) { delete(n.Labels, remediations.PhaseLabel) })
					w.machines["n1"].sick = 0
					w.darken("n0", true)
				})
				w.pass(3 * time.Minute)
			},
		},
		"2: a leader's repair excludes those of its nodes": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					s.Journal.OtherRepairs, s.Fleet = nil, fleet.New(s.Config, []*corev1.Node{s.Node}, &ledger.Ledger{}, func(string) bool { return false }, time.Now())
				})
			},
			speaks: "2: an intent on n1",
			tale: relayFails(nothingFirst, func(w *world) {
				w.mesh.members["n1"].darkLeading = true
				w.ail("n1", 1)
				w.post("n1", remediations.StatusFiring)
			}),
		},
		"3: one leader at a time": {
			take: func(h *hands) {
				h.leaderPolicy(func(c *remediations.Config, _ *remediations.Policy) { c.Limits.Locations.Concurrent = 9 })
			},
			tale: relayFails(func(w *world) { w.darken("n3", true) }), speaks: "3: 2 leaders are under repair",
		},
		"3: a leader has its slot": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.forgetSlots = true }) }, tale: relayFails(nothingFirst), speaks: "3: the leader's intent",
		},
		"S2: a location is moved once in a while": {
			take: func(h *hands) {
				h.leaderPolicy(func(c *remediations.Config, _ *remediations.Policy) { c.Limits.Locations.PerLocation = 0 })
			},
			tale: relayFails(nothingFirst, func(w *world) {}, func(w *world) { w.darken("n1", true) }), speaks: "S2-9: the intent",
		},
		"S2: no candidate is tried twice": {
			config: func(c *remediations.Config) { withLeaders(c).Policies[1].Plan[0].Attempts = 4 },
			take: func(h *hands) {
				h.w.core.decideLocation = func(s *location.State, now time.Time) lifecycle.Decision {
					d := location.Decide(s, now)
					if r := s.Record; d.PutBack == nil || len(r.Moves) != 2 || s.Seen == nil {
						return d
					}
					again, _ := s.Record, d.PutBack
					c := *again
					c.Phase, c.Step.Attempt, c.Since, c.Deadline = remediations.PhaseActing, 3, now, now.Add(time.Minute)
					c.Moves = append(slices.Clone(again.Moves), remediations.Move{Location: "l0", From: "n2", To: "n1", Before: map[string]*string{"n1": nil}})
					c.Intent = &remediations.Intent{ID: again.ID + "-0-3", At: now, Successor: "n1"}
					return lifecycle.Decision{Verb: lifecycle.VerbIssue, Record: &c, Policy: s.Config.Policies[1]}
				}
			},
			tale: relayFails(func(w *world) { w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].darkLeading = true, true }), speaks: "S2: the successor",
		},
		"S2: what answers is not moved": {
			take: func(h *hands) {
				h.sightOf(func(_ *location.State, g *location.Observation) { g.Reached = false })
			},
			tale: relayFails(func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }, func(w *world) {
				w.darken("n0", false)
				w.in(13*time.Second, func() { w.unhold("n0") }) // the alert outlives its cause by some seconds
			}), speaks: "S2-3: an intent",
		},
		"S2: what must not be moved is not": {
			take: func(h *hands) {
				h.sightOf(func(_ *location.State, g *location.Observation) { g.Held = "" })
			},
			tale: relayFails(func(w *world) { w.mesh.places["l0"].hold("its granularity is full") }), speaks: "S2-7: an intent",
		},
		"6: of a location of which nobody knows anything nothing is done": {
			take: func(h *hands) {
				h.sightOf(func(_ *location.State, g *location.Observation) {
					if g.Unknown != "" {
						g.Unknown = ""
						g.Candidates = []remediations.Move{{Location: "l0", From: "n0", To: "n1", Before: map[string]*string{"n1": nil}}}
					}
				})
			},
			tale: relayFails(func(w *world) { w.mesh.places["l0"].hide(true) }), speaks: "6: an intent",
		},
		"7: the cure is that the location answers": {
			take: func(h *hands) {
				h.sightOf(func(s *location.State, g *location.Observation) {
					g.Reached = s.Record != nil && s.Record.Phase == remediations.PhaseVerifying
				})
			},
			tale: relayFails(func(w *world) { w.mesh.members["n1"].darkLeading = true }, func(w *world) { w.mesh.places["l0"].quiet = true }), speaks: "7: Recovered of location",
		},
		"8: what ran out is put back": {
			take: func(h *hands) {
				h.w.core.decideLocation = func(s *location.State, now time.Time) lifecycle.Decision {
					d := location.Decide(s, now)
					if d.PutBack != nil {
						d.PutBack = d.PutBack[:1]
					}
					return d
				}
			},
			tale: relayFails(func(w *world) { w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].darkLeading = true, true }), speaks: "8: the leader's repair",
		},
	}
	maps.Copy(all, moveKnockOuts())
	for name, k := range all {
		if k.config == nil {
			k.config = leadersToo
			all[name] = k
		}
	}
	return all
}

// noFleet is a fleet without repairs.
func noFleet(s *location.State) *fleet.Fleet {
	return fleet.New(s.Config, []*corev1.Node{s.Node}, &ledger.Ledger{}, func(string) bool { return false }, time.Now())
}

// moveKnockOuts are the conditions before a move is made: invariants 4, 5 and 9.
func moveKnockOuts() map[string]knockOut {
	slow := func(w *world) { blindPort(w); w.mesh.mood.before = 30 * time.Second }
	return map[string]knockOut{
		"4: the move is on record before it is made": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.forgetIntents, h.w.lies.neverAsk = true, true }) },
			tale: relayFails(nothingFirst), speaks: "4: a move of",
		},
		"4: a move without an outcome counts as made": {
			take: func(h *hands) {
				callsAgain(h)
				h.w.core.decideLocation = func(s *location.State, now time.Time) lifecycle.Decision {
					if r := s.Record; r != nil && r.Phase == remediations.PhaseActing && s.Call == nil {
						return lifecycle.Decision{Verb: lifecycle.VerbIssue, Record: r, Policy: s.Config.Policies[1]}
					}
					return location.Decide(s, now)
				}
			},
			speaks: "4: the intent",
			tale: func(_ *testing.T, w *world) {
				w.do(w.spread)
				w.start()
				w.do(func() { blindPort(w); w.mesh.mood.after = 20 * time.Second; w.darken("n0", true) })
				w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 })
				w.do(func() { w.instances[0].dead = true })
				w.pass(8 * time.Second)
				w.start()
				w.pass(time.Minute)
			},
		},
		"4: a move goes out within ten seconds of its intent": {
			take: func(h *hands) { h.w.core.intentGood = time.Hour }, tale: relayFails(slow), speaks: "4: the move",
		},
		"4: the leaders' port asks at the last moment": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.neverAsk = true }) }, tale: relayFails(slow), speaks: "4: the move",
		},
		"4: and before each key that it writes": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.askOnce = true }) }, speaks: "4: a key for the move",
			tale: relayFails(func(w *world) { w.mesh.mood.between = 30 * time.Second }),
		},
		"4: nor is a move gone on with that counts as made": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.askOnce = true }); h.w.core.intentGood = time.Hour }, speaks: "4: a key for the move",
			tale: relayFails(func(w *world) { w.mesh.mood.between = 70 * time.Second }),
		},
		"9: and between two keys": {
			take: func(h *hands) {
				h.w.core.mayStillMove = func(*remediations.Config, *corev1.Node, []*corev1.Node, string) error { return nil }
			},
			speaks: "9: a key for the move",
			tale: func(_ *testing.T, w *world) {
				w.do(w.spread)
				w.start()
				w.do(func() { w.mesh.mood.between = 5 * time.Second; w.darken("n0", true) })
				w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 })
				w.do(func() { w.hold("n1", edit(remediations.PauseKey, "true")) })
				w.pass(time.Minute)
			},
		},
		"5: no move under a silence": {
			take: func(h *hands) {
				h.leader(func(s *location.State) {
					hear(s.State, everyAlert(func(a *alerts.Alert) { a.SilencedBy, a.Active = nil, true }))
				})
			},
			tale: relayFails(func(w *world) { w.mesh.places["l0"].silenced = true }), speaks: "5: a move of",
		},
		"9: a pause holds leaders": {
			take: func(h *hands) {
				h.leader(func(s *location.State) {
					s.Node = s.Node.DeepCopy()
					delete(s.Node.Annotations, remediations.PauseKey)
				})
			},
			tale: relayFails(func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }), speaks: "9: an intent for the leader",
		},
		"9: also between the intent and the move, on the successor": {
			take: func(h *hands) {
				h.w.core.mayStillMove = func(*remediations.Config, *corev1.Node, []*corev1.Node, string) error { return nil }
			},
			speaks: "9: a move of",
			tale: func(_ *testing.T, w *world) {
				w.do(w.spread)
				w.start()
				w.do(func() { blindPort(w); w.mesh.mood.before = 5 * time.Second; w.darken("n0", true) })
				w.until(2*time.Minute, func() bool { r := w.leaderRecords()["n0"]; return r != nil && r.Phase == remediations.PhaseActing })
				w.do(func() { w.hold("n1", edit(remediations.PauseKey, "true")) })
				w.pass(time.Minute)
			},
		},
		"9: a pause holds the putting back": {
			take: func(h *hands) {
				h.w.core.mayStillPutBack = func(*remediations.Config, *corev1.Node, []*corev1.Node, string) error { return nil }
				h.w.core.decideLocation = func(s *location.State, now time.Time) lifecycle.Decision {
					c, state := *s, *s.State
					c.State, state.Node = &state, s.Node.DeepCopy()
					delete(state.Node.Annotations, remediations.PauseKey)
					return location.Decide(&c, now)
				}
			},
			speaks: "9: a move of the leader n0 is put back",
			tale: func(_ *testing.T, w *world) {
				w.do(w.spread)
				w.start()
				w.do(func() {
					w.mesh.members["n1"].darkLeading, w.mesh.members["n2"].darkLeading, w.mesh.backFails = true, true, true
					w.darken("n0", true)
				})
				w.until(20*time.Minute, func() bool { r := w.leaderRecords()["n0"]; return r != nil && r.Back != nil })
				w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")) })
				w.pass(time.Minute)
				w.do(func() { w.mesh.backFails = false })
				w.pass(2 * time.Minute)
			},
		},
	}
}
