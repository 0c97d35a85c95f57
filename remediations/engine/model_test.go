package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// life throws everything at the engine that its world can: sick machines, people, dead Alertmanagers, a provider in a
// bad mood, lost writes, a cache that is behind, processes that die or sleep.
type life struct {
	w *world
	// restless is until when something is broken by design, so that deadlines may pass.
	restless time.Time
}

var nodeNames = []string{"n0", "n1", "n2", "n3", "n4", "n5"}

func pick(t *rapid.T) string { return rapid.SampledFrom(nodeNames).Draw(t, "node") }

// oneOf takes one of the actions. There are more ways to be in the way of a repair than to come on with one: drawn all
// alike, hardly a world would see any.
func oneOf(actions map[string]func(*rapid.T)) func(*rapid.T) {
	names := slices.Sorted(maps.Keys(actions))
	return func(t *rapid.T) { actions[rapid.SampledFrom(names).Draw(t, "what")](t) }
}

func (l *life) actions() map[string]func(*rapid.T) {
	do := func(f func(t *rapid.T, w *world)) func(*rapid.T) {
		return func(t *rapid.T) { l.w.do(func() { f(t, l.w) }) }
	}
	edit := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[key] = value }
	}
	alertmanagers := map[string]func(*rapid.T){
		"a silence comes or goes": do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.silenced, m.silencedHere = !m.silenced, rapid.IntRange(0, 2).Draw(t, "here")
			}
		}),
		"an inhibition comes or goes": do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.inhibited = !m.inhibited
			}
		}),
		"a replica has not heard, or not processed": do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.unheardBy, m.unprocessed = rapid.Bool().Draw(t, "unheard"), rapid.Bool().Draw(t, "unprocessed")
			}
		}),
		"a replica dies, or lives, or loses the Watchdog": do(func(t *rapid.T, w *world) {
			w.replicas[rapid.IntRange(0, 1).Draw(t, "replica")] = replicaState{dead: rapid.Bool().Draw(t, "dead"), noWatchdog: rapid.Bool().Draw(t, "no Watchdog")}
		}),
		"the source of alerts dies or lives": do(func(t *rapid.T, w *world) { w.sourceDead = !w.sourceDead }),
		"kube-state-metrics goes or comes": do(func(t *rapid.T, w *world) {
			w.blindBy = rapid.SampledFrom([]string{"", "DrydockSourceDown"}).Draw(t, "by")
		}),
		"a look takes": do(func(t *rapid.T, w *world) {
			w.lookTakes = rapid.SampledFrom([]time.Duration{0, time.Second, 8 * time.Second, 20 * time.Second}).Draw(t, "time")
		}),
	}
	people := map[string]func(*rapid.T){
		"a person holds the node": do(func(t *rapid.T, w *world) {
			w.hold(pick(t), rapid.SampledFrom([]func(*corev1.Node){
				edit(remediations.PauseKey, "true"), edit(remediations.PauseKey, "never mind"), edit(remediations.BreakGlassKey, "why"),
				func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" },
			}).Draw(t, "how"))
		}),
		"a person lets go": do(func(t *rapid.T, w *world) { w.unhold(pick(t)) }),
		"a person resets":  do(func(t *rapid.T, w *world) { w.edit(pick(t), edit(remediations.ResetKey, "true")) }),
		"a person cordons or uncordons": do(func(t *rapid.T, w *world) {
			n, yes := pick(t), rapid.Bool().Draw(t, "cordon")
			if w.nodes[n] != nil {
				w.machines[n].cordonedBy = map[bool]string{true: "a person"}[yes]
				w.edit(n, func(n *corev1.Node) { n.Spec.Unschedulable = yes })
			}
		}),
		"a person spoils the record": do(func(t *rapid.T, w *world) {
			if n := pick(t); w.record(n) != nil {
				w.edit(n, edit(remediations.NodeRepairKey, rapid.SampledFrom([]string{"{}", `{"v":2}`, ""}).Draw(t, "record")))
			}
		}),
		"a forged post":    do(func(t *rapid.T, w *world) { w.post(pick(t), remediations.StatusFiring) }),
		"somebody reboots": do(func(t *rapid.T, w *world) { w.reboot(pick(t)) }),
	}
	infrastructure := map[string]func(*rapid.T){
		"booting takes": do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.bootTakes = rapid.SampledFrom([]time.Duration{5 * time.Second, time.Minute, 9 * time.Minute, 25 * time.Minute}).Draw(t, "time")
			}
		}),
		"a lease freezes or thaws": do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.leaseFrozen = !m.leaseFrozen
			}
		}),
		"the provider's mood": do(func(t *rapid.T, w *world) {
			w.mood = rapid.SampledFrom([]providerMood{
				{}, {}, {refuse: true}, {cut: true}, {before: 8 * time.Second}, {before: 12 * time.Second}, {after: 20 * time.Second}, {after: time.Hour},
			}).Draw(t, "mood")
		}),
		"a write or a read is lost": do(func(t *rapid.T, w *world) {
			op := rapid.SampledFrom([]string{"write", "save", "load", "nodes"}).Draw(t, "operation")
			w.faults[op] = rapid.SliceOfN(rapid.SampledFrom([]string{"conflict", "lost", "written"}), 1, 3).Draw(t, "faults")
		}),
		"the cache falls behind": do(func(t *rapid.T, w *world) { w.lag = rapid.IntRange(0, 6).Draw(t, "events") }),
		"a Node goes, and comes": do(func(t *rapid.T, w *world) {
			n := pick(t)
			if w.nodes[n] != nil {
				w.leave(n)
			} else {
				w.join(n, "civo://again-"+n)
			}
		}),
	}
	processes := map[string]func(*rapid.T){
		"the process dies": func(t *rapid.T) {
			l.w.do(func() {
				for _, i := range l.w.instances {
					i.dead = true
				}
			})
			l.w.pass(rapid.SampledFrom([]time.Duration{15 * time.Second, 5 * time.Minute}).Draw(t, "until another leads"))
			l.w.do(func() { l.restless = time.Now().Add(time.Minute) })
			l.w.start()
		},
		"the process will die at a step": do(func(t *rapid.T, w *world) {
			i := w.instances[len(w.instances)-1]
			i.crashAt, i.crashAfter = i.changes+rapid.IntRange(1, 4).Draw(t, "step"), rapid.Bool().Draw(t, "after")
		}),
		"the process is asleep, and another leads": func(t *rapid.T) {
			l.w.do(func() {
				i := l.w.instances[len(l.w.instances)-1]
				i.stall = rapid.SampledFrom([]time.Duration{16 * time.Second, 40 * time.Second, 5 * time.Minute}).Draw(t, "for")
				time.AfterFunc(i.stall+2*time.Second, i.cancel) // awake again, it soon learns that it has lost the lead
			})
			l.w.pass(16 * time.Second)
			l.w.start()
		},
		"it stops in good order": func(t *rapid.T) {
			l.w.do(func() { l.w.instances[len(l.w.instances)-1].cancel() })
			l.w.pass(6 * time.Second)
			l.w.start()
		},
	}
	return map[string]func(*rapid.T){
		"": l.check,
		"time passes": func(t *rapid.T) {
			l.w.pass(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, 16 * time.Second, time.Minute, 4 * time.Minute, 11 * time.Minute}).Draw(t, "for"))
		},
		"a machine fails, and time passes": func(t *rapid.T) {
			l.w.do(func() {
				n := pick(t)
				l.w.ail(n, rapid.SampledFrom([]int{1, 2, 9}).Draw(t, "reboots needed"))
				l.w.post(n, remediations.StatusFiring)
			})
			l.w.pass(rapid.SampledFrom([]time.Duration{5 * time.Second, 30 * time.Second, 90 * time.Second, 9 * time.Minute}).Draw(t, "for"))
		},
		"more time passes": func(t *rapid.T) {
			l.w.pass(rapid.SampledFrom([]time.Duration{10 * time.Second, 45 * time.Second, 2 * time.Minute}).Draw(t, "for"))
		},
		"all is well with the world, for once": do(func(_ *rapid.T, w *world) {
			w.replicas, w.sourceDead, w.blindBy, w.lookTakes, w.mood = [2]replicaState{}, false, "", 0, providerMood{}
			for _, n := range nodeNames {
				if m := w.machines[n]; m != nil {
					m.silenced, m.inhibited, m.unheardBy, m.unprocessed, m.leaseFrozen = false, false, false, false, false
				}
			}
		}),
		"a machine fails": do(func(t *rapid.T, w *world) {
			n := pick(t)
			w.ail(n, rapid.SampledFrom([]int{1, 1, 2, 9}).Draw(t, "reboots needed"))
			if rapid.Bool().Draw(t, "posted") {
				w.post(n, remediations.StatusFiring)
			}
		}),
		"a machine heals": do(func(t *rapid.T, w *world) {
			n := pick(t)
			w.heal(n)
			if rapid.Bool().Draw(t, "posted") {
				w.post(n, remediations.StatusResolved)
			}
		}),
		"an Alertmanager": oneOf(alertmanagers), "a person": oneOf(people), "the infrastructure": oneOf(infrastructure), "a process": oneOf(processes),
	}
}

// check looks at the world after every step. A leader that died is followed by another.
func (l *life) check(t *rapid.T) {
	if v := l.w.violated(); v != "" {
		t.Fatal(v)
	}
	if at(l.w, func() bool { return l.w.instances[len(l.w.instances)-1].dead }) {
		l.w.pass(15 * time.Second)
		l.w.start()
	}
}

// calm makes the world well again, and gives the engine the time to see it: then nothing may be left over.
func (l *life) calm(t *rapid.T) {
	w := l.w
	w.do(func() {
		w.replicas, w.sourceDead, w.blindBy, w.lookTakes, w.mood, w.lag = [2]replicaState{}, false, "", 0, providerMood{}, 0
		clear(w.faults)
		for _, i := range w.instances {
			i.crashAt = 0
		}
		for _, n := range nodeNames {
			if m := w.machines[n]; m != nil {
				m.silenced, m.inhibited, m.unheardBy, m.unprocessed, m.leaseFrozen = false, false, false, false, false
				m.bootTakes = time.Minute
				w.unhold(n)
				w.heal(n)
			}
		}
	})
	l.check(t)
	w.pass(25 * time.Minute)
	w.do(func() { w.overdue(time.Minute) })
	l.check(t)
	w.do(func() {
		for _, s := range mustLedger(w).Slots {
			// A record that nobody can read keeps its slot: it may be in flight.
			n := w.nodes[s.Node]
			if n == nil || remediations.ReadJournal(n).Malformed == nil {
				w.fail("a slot is left over: %v", s)
			}
		}
		for n := range w.nodes {
			r := w.record(n)
			if r != nil && r.Phase != remediations.Exhausted {
				w.fail("%s has a repair left over: %s", n, r.Encode())
			}
		}
	})
	l.check(t)
}

func mustLedger(w *world) *remediations.Ledger {
	l, err := remediations.DecodeLedger(w.ledger)
	if err != nil {
		w.fail("the ledger cannot be read: %v", err)
		return &remediations.Ledger{}
	}
	return l
}

// TestWhateverHappens is the property test of all invariants over the whole engine: the world checks them at every
// write and every call. rapid prints the seed of a failure; -rapid.seed plays it again.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := modelConfig()
		c.Policies[0].For = rapid.SampledFrom([]time.Duration{0, 2 * time.Minute}).Draw(rt, "for")
		c.Policies[0].Mode = rapid.SampledFrom([]remediations.Mode{remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeObserve}).Draw(rt, "mode")
		c.Limits.Concurrent.Value = rapid.IntRange(1, 2).Draw(rt, "concurrent")
		c.RequireAll = rapid.Bool().Draw(rt, "require all")
		inBubble(t, func(*testing.T) {
			l := &life{w: newWorld(c, len(nodeNames))}
			defer l.w.close()
			l.w.start()
			rt.Repeat(l.actions())
			l.calm(rt)
		})
	})
}
