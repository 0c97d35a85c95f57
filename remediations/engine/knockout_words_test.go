package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
)

func active(a *alerts.Alert) {
	a.SilencedBy, a.InhibitedBy, a.MutedBy, a.Active = nil, nil, nil, true
}

// say makes a replica report the node's alert as active.
func say(_ int, s *lifecycle.State, r *alerts.Replica) {
	*r = alerts.Replica{URL: r.URL, Watchdog: true, WatchdogAt: time.Now(), Alerts: map[string]alerts.Alert{}}
	for _, a := range s.Journal.Alerts {
		r.Alerts[a.Fingerprint] = alerts.Alert{Labels: labelsOf(s.Node.Name), StartsAt: time.Now().Add(-time.Hour), Active: true, Receivers: []string{"drydock"}}
	}
}

func silence(w *world) { w.machines["n0"].silenced = true }

// forgedPost is an alert that only the post has, on a node that has a fault.
func forgedPost(_ *testing.T, w *world) {
	w.start()
	w.pass(16 * time.Second)
	w.do(func() { w.breakDown("n0", 1); w.machines["n0"].lapsed = true; w.post("n0", remediations.StatusFiring) })
	w.pass(5 * time.Minute)
}

// wordKnockOuts are the knock-outs of invariants 5 and 9.
func wordKnockOuts() map[string]knockOut {
	const nobody = "5: a call for n0"
	all := map[string]knockOut{
		"5: an Alertmanager says that the alert is active": {take: func(h *hands) { h.word(say) }, tale: forgedPost, speaks: nobody},
		"5: Alertmanager routes the alert to Drydock": {
			config: func(c *remediations.Config) { c.Policies[0].Witness = &signs.Witness{None: true} }, // n0 is healthy
			take: func(h *hands) {
				h.word(everyAlert(func(a *alerts.Alert) { a.Receivers = []string{"drydock"} }))
			},
			speaks: nobody,
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.machines["n0"].forged = true
					a := w.config.NewAlert(w.config.Policies[0], labelsOfForged("n0"), remediations.StatusFiring, time.Now(), time.Now())
					w.edit("n0", edit(a.Key(), a.Encode()))
				})
				w.pass(5 * time.Minute)
			},
		},
		"5: none says silenced": {
			take: func(h *hands) { h.word(everyAlert(active)) }, tale: after(silence), speaks: nobody,
		},
		"5: not even the other one": {
			take: func(h *hands) {
				h.word(func(i int, s *lifecycle.State, r *alerts.Replica) {
					if i == 1 {
						say(i, s, r)
					}
				})
			},
			tale: after(func(w *world) { silence(w); w.machines["n0"].silencedHere = 2 }), speaks: nobody,
		},
		"5: none says inhibited": {
			take: func(h *hands) { h.word(everyAlert(active)) }, tale: after(func(w *world) { w.machines["n0"].inhibited = true }), speaks: nobody,
		},
		"5: one that has processed it": {
			take: func(h *hands) { h.word(everyAlert(active)) }, tale: after(func(w *world) { w.machines["n0"].unprocessed = true }), speaks: nobody,
		},
		"5: the replica shows the Watchdog": {
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.Watchdog = false })
			},
			tale: after(func(w *world) { w.replicas = [2]replicaState{{noWatchdog: true}, {noWatchdog: true}} }), speaks: nobody,
		},
		"5: no alert of blindWhen": {
			take: func(h *hands) {
				h.word(func(_ int, _ *lifecycle.State, r *alerts.Replica) { r.BlindBy = "" })
			},
			tale: after(func(w *world) { w.blindBy = "DrydockSourceDown" }), speaks: nobody,
		},
		"5: with require: all each must answer": {
			config: func(c *remediations.Config) { c.RequireAll = true },
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.RequireAll = false })
			},
			tale: after(func(w *world) { w.replicas[0].dead = true }), speaks: nobody,
		},
		"5: none answering is a hold": {
			take: func(h *hands) { h.word(say) }, speaks: nobody,
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.replicas = [2]replicaState{{dead: true}, {dead: true}}
					w.breakDown("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(5 * time.Minute)
			},
		},
		"5: at most thirty seconds ago": {
			config: func(c *remediations.Config) { c.Policies[0].For = 2 * time.Minute },
			take: func(h *hands) {
				h.w.core.lookLongest = time.Hour
				h.state(func(s *lifecycle.State, now time.Time) {
					if s.Snapshot != nil {
						w := *s.Snapshot
						w.AskedAt, s.Snapshot, s.LookSince = now, &w, now
						hear(s, everyAlert(func(a *alerts.Alert) { a.UpdatedAt = time.Time{} }))
					}
				})
			},
			speaks: nobody,
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(40 * time.Second)
				w.do(func() { w.lookTakes = 10 * time.Minute })
				w.pass(5 * time.Minute)
			},
		},
		"9: the last look before the call": {
			take: func(h *hands) {
				h.w.core.mayStillAct = func(*remediations.Config, *corev1.Node, string, []signs.Sign, map[signs.Sign]signs.Testimony) error {
					return nil
				}
			}, speaks: "9: a call for n0",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.mood.before = 5 * time.Second; w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.until(5*time.Second, func() bool { return w.record("n0") != nil && w.record("n0").Phase == remediations.PhaseActing })
				w.do(func() { w.hold("n0", edit(remediations.PauseKey, "true")) })
				w.pass(time.Minute)
			},
		},
		"9: a pause stays until its time": {
			take: func(h *hands) {
				h.decision(func(_ *lifecycle.State, d *lifecycle.Decision) {
					d.Consume = append(d.Consume, remediations.PauseKey)
				})
			},
			tale: after(func(w *world) { w.hold("n0", edit(remediations.PauseKey, "true")) }), speaks: "9: the pause",
		},
	}
	for what, c := range map[string]struct{ say, unsay func(*corev1.Node) }{
		"pause":       {edit(remediations.PauseKey, "true"), func(n *corev1.Node) { delete(n.Annotations, remediations.PauseKey) }},
		"break-glass": {edit(remediations.BreakGlassKey, "why"), func(n *corev1.Node) { delete(n.Annotations, remediations.BreakGlassKey) }},
		"exclude":     {func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }, func(n *corev1.Node) { delete(n.Labels, remediations.ExcludeLabel) }},
	} {
		take := func(h *hands) { h.node(c.unsay) }
		all["9: "+what] = knockOut{take: take, tale: after(func(w *world) { w.hold("n0", c.say) }), speaks: "9: an intent on n0"}
		all["9: "+what+" in mid-repair"] = knockOut{take: take, speaks: "9: an intent on n0", tale: func(_ *testing.T, w *world) {
			w.start()
			w.do(func() { w.ail("n0", 2) })
			w.until(time.Minute, func() bool { return len(w.calls) == 1 })
			w.do(func() { w.hold("n0", c.say) })
			w.pass(20 * time.Minute)
		}}
	}
	return all
}
