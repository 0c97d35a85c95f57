package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// live checks the liveness clause. The world is calm, everything answers, and a person has reset
// exhausted repairs. Then, within a bounded time, every breaker is closed, no slot is held, and a
// new fault on a healthy node is repaired.
func (l *life) live(t *rapid.T) {
	l.w.live()
	l.check(t)
}

func (w *world) live() {
	w.do(func() {
		for _, n := range slices.Sorted(maps.Keys(w.nodes)) {
			if m := w.machines[n]; !m.offSince.IsZero() && !w.staysOff(m) {
				w.heal(n) // a request switched it off in the calm, and its end asks a person to switch it on
			}
			w.machines[n].cordonedBy = ""
			w.edit(n, func(n *corev1.Node) {
				n.Spec.Unschedulable = false
				n.Annotations[remediations.ResetKey] = "true"
				delete(n.Annotations, remediations.CancelKey)
			})
		}
	})
	w.pass(10 * time.Minute)
	w.do(func() {
		if w.nodes["n5"] != nil {
			w.leave("n5")
		}
	})
	w.pass(w.config.Limits.StormCooldown + time.Minute) // the machine may have been unhealthy until it left
	w.do(func() {
		ledger := mustLedger(w)
		for scope, b := range ledger.Status.Breakers {
			w.fail("liveness: the breaker of %s is %s since %s", scope, b.State, b.Since)
		}
		for _, s := range ledger.Slots {
			w.fail("liveness: a slot is left over: %v", s)
		}
		for n := range w.nodes {
			if r := w.record(n); r != nil && (r.Cause.Request == "" || r.Intent != nil) {
				w.fail("liveness: %s has a repair left over: %s", n, r.Encode())
			}
		}
		w.join("n5", "civo://fresh")
		w.edit("n5", func(n *corev1.Node) { n.CreationTimestamp.Time = n.CreationTimestamp.Add(-2 * marksBelieved) })
		w.mark("n5", "kured", time.Now().Add(-2*marksBelieved)) // the mark was forgotten
		w.ail("n5", 1)
	})
	p := w.config.Policies[0]
	can := slices.ContainsFunc(p.Plan, func(s remediations.Step) bool {
		return s.Name != "drain" && w.config.Provided[s.Name] && (s.Name != "replace" || !w.gpus) // a machine with GPUs is never replaced
	})
	if p.Mode == remediations.ModeOff || p.Approval || !can || w.violated() != "" {
		return
	}
	before := w.callCount()
	if p.Mode == remediations.ModeObserve && !w.observedAndFreed(p) {
		return
	}
	if !w.until(30*time.Minute, func() bool { return len(w.calls) > before }) {
		w.do(func() {
			w.fail("liveness: the fresh fault of n5 is not repaired: %v; holds %v, stopped %v, exhausted %v", w.record("n5"), mustLedger(w).Status.Holds, mustLedger(w).Status.Stopped, mustLedger(w).Status.Exhausted)
		})
	}
}

// outages are actions that last for hours.
func (l *life) outages() map[string]func(*rapid.T) {
	lasts := func(t *rapid.T) time.Duration {
		return rapid.SampledFrom([]time.Duration{20 * time.Minute, 3 * time.Hour}).Draw(t, "for")
	}
	without := func(ops ...string) func(*rapid.T) {
		return func(t *rapid.T) {
			l.w.do(func() {
				for _, op := range ops {
					l.w.always[op] = "lost"
				}
			})
			l.w.pass(lasts(t))
			l.w.do(func() {
				for _, op := range ops {
					delete(l.w.always, op)
				}
			})
		}
	}
	return map[string]func(*rapid.T){
		"the ledger cannot be saved":   without("save"),
		"the ledger cannot be reached": without("save", "load"),
		"no Alertmanager answers": func(t *rapid.T) {
			l.w.do(func() { l.w.replicas = [2]replicaState{{dead: true}, {dead: true}} })
			l.w.pass(lasts(t))
			l.w.do(func() { l.w.replicas = [2]replicaState{} })
		},
		"a node is relabelled": l.do(func(t *rapid.T, w *world) {
			zone, pool := rapid.SampledFrom([]string{"z0", "z1", "z9"}).Draw(t, "zone"), rapid.SampledFrom([]string{"p0", "p1"}).Draw(t, "pool")
			w.edit(pick(t), func(n *corev1.Node) { n.Labels["zone"], n.Labels["pool"] = zone, pool })
			w.judge()
		}),
		"another policy denies Drydock's writes": func(t *rapid.T) {
			l.w.do(func() { l.w.deny() })
			l.w.pass(lasts(t))
			l.w.do(func() { l.w.writes = nil })
		},
		"a watch stands still": func(t *rapid.T) {
			i := l.w.last()
			l.w.do(func() { i.still = true })
			l.w.pass(lasts(t))
			l.w.do(func() { i.still = false; l.w.notice() })
		},
		"a newer version leaves what this one does not know": l.do(func(t *rapid.T, w *world) { w.leaveUnknown(pick(t)) }),
		"the API server's store goes back":                   l.storeGoesBack,
		"a clock is ahead for minutes": func(t *rapid.T) {
			if at(l.w, func() bool { return l.w.ledger == nil }) {
				return
			}
			l.follow(l.w.last().config, rapid.SampledFrom([]time.Duration{2 * time.Hour, 720 * time.Hour}).Draw(t, "by"))
			l.w.pass(2 * time.Minute)
			l.follow(l.w.last().config, 0)
		},
	}
}
