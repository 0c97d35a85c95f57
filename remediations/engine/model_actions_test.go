package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

var nodeNames = []string{"n0", "n1", "n2", "n3", "n4", "n5"}

func pick(t *rapid.T) string { return rapid.SampledFrom(nodeNames).Draw(t, "node") }

// oneOf draws one of the actions. The world has more actions that block a repair than actions that
// advance one. If all were equally likely, a repair would happen in hardly any world.
func oneOf(actions map[string]func(*rapid.T)) func(*rapid.T) {
	names := slices.Sorted(maps.Keys(actions))
	return func(t *rapid.T) { actions[rapid.SampledFrom(names).Draw(t, "what")](t) }
}

// do returns an action that changes the world at once.
func (l *life) do(f func(t *rapid.T, w *world)) func(*rapid.T) {
	return func(t *rapid.T) { l.w.do(func() { f(t, l.w) }) }
}

func edit(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func toggled(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return time.Time{}
}

// repairEverything repairs all that does not belong to one machine.
func (w *world) repairEverything() {
	w.replicas, w.blindBy, w.lookTakes, w.mood, w.leasesFrozen = [2]replicaState{}, "", 0, providerMood{}, time.Time{}
	w.writes, w.odd, w.mute = nil, nil, ""
	w.reviveSource()
	w.mendSidecars()
	w.mendMesh()
	for _, m := range w.machines {
		m.silenced, m.inhibited, m.unheardBy, m.unprocessed, m.forged, m.leaseFrozen = false, false, false, false, false, time.Time{}
	}
}

// tend ends the trouble of every machine. If the provider took the machine away, the Node is
// deleted, too. If a record is unreadable, a person does what the hold requests.
func (w *world) tend() {
	w.forgetUnknown()
	w.mendSigns()
	for _, n := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[n]
		m.bootTakes, m.pods = time.Minute, podsOf{}
		w.unhold(n)
		w.edit(n, func(n *corev1.Node) {
			w.leaving(n, false)
			n.Status.Conditions = slices.DeleteFunc(slices.Clone(n.Status.Conditions), isOthers)
		})
		if !w.staysOff(m) { // Drydock switches it on
			w.heal(n)
		}
		m.sick, m.broken = min(m.sick, 1), min(m.broken, 1)
		if !m.recycled.IsZero() {
			w.leave(n)
			continue
		}
		if node := w.nodes[n]; node != nil && modelRegistry.ReadJournal(node).Malformed != nil {
			w.edit(n, edit(remediations.ResetKey, "true"))
		}
	}
}

func (l *life) actions() map[string]func(*rapid.T) {
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
		"a full machine fails for good, and is being drained": func(t *rapid.T) {
			n := pick(t)
			l.w.do(func() {
				if m := l.w.machines[n]; m != nil {
					m.pods = podsOf{left: 300}
					l.w.ail(n, 9)
					l.w.post(n, remediations.StatusFiring)
				}
			})
			evicted := at(l.w, func() int { return len(l.w.evictions) })
			l.w.until(13*time.Minute, func() bool { return len(l.w.evictions) > evicted })
		},
		"more time passes": func(t *rapid.T) {
			l.w.pass(rapid.SampledFrom([]time.Duration{10 * time.Second, 45 * time.Second, 2 * time.Minute}).Draw(t, "for"))
		},
		"the self-test arrives": l.do(func(_ *rapid.T, w *world) {
			w.arrive(time.Now())
		}),
		"all is well with the world, for once": l.do(func(_ *rapid.T, w *world) {
			w.repairEverything()
		}),
		"a machine fails": l.do(func(t *rapid.T, w *world) {
			n := pick(t)
			w.ail(n, rapid.SampledFrom([]int{1, 1, 2, 9}).Draw(t, "reboots needed"))
			if rapid.Bool().Draw(t, "posted") {
				w.post(n, remediations.StatusFiring)
			}
		}),
		"a machine breaks, and its node stays Ready": l.do(func(t *rapid.T, w *world) {
			w.breakDown(pick(t), rapid.SampledFrom([]int{1, 2, 9}).Draw(t, "reboots needed"))
		}),
		"an alert lapses though its fault stays, or comes again": l.do(func(t *rapid.T, w *world) {
			if m := w.machines[pick(t)]; m != nil {
				m.lapsed = !m.lapsed
			}
		}),
		"somebody forges an alert": l.do(func(t *rapid.T, w *world) { w.forge(pick(t)) }),
		"a storm": func(t *rapid.T) {
			l.w.do(func() {
				for _, n := range nodeNames[:rapid.IntRange(2, len(nodeNames)).Draw(t, "machines")] {
					l.w.ail(n, rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "reboots needed"))
				}
			})
			l.w.pass(rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute, 3 * time.Minute}).Draw(t, "for"))
			l.w.do(func() {
				for _, n := range nodeNames[rapid.IntRange(0, 3).Draw(t, "still sick"):] {
					l.w.heal(n)
				}
			})
		},
		"a machine heals": l.do(func(t *rapid.T, w *world) {
			n := pick(t)
			w.heal(n)
			if rapid.Bool().Draw(t, "posted") {
				w.post(n, remediations.StatusResolved)
			}
		}),
		"an outage": oneOf(l.outages()), "a sign lies": oneOf(l.signActions()),
		"a location": oneOf(l.locations()), "a leader fails, and time passes": l.leaderFails,
		"an Alertmanager": oneOf(l.alertmanagers()), "a person": oneOf(l.people()), "the infrastructure": oneOf(l.infrastructure()), "a process": oneOf(l.processes()), "a sidecar": oneOf(l.sidecars()), "a pod is replaced, and time passes": func(t *rapid.T) {
			l.w.do(func() {
				if g := l.anyPod(t); g != nil {
					l.w.replacePod(g.name, pick(t))
					l.w.postPod(g.name)
				}
			})
			l.w.pass(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, 40 * time.Second}).Draw(t, "for"))
		},
	}
}
