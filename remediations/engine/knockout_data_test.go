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

// beating makes Decide believe that every lease was counted just now, and is fresh.
func beating(h *hands) {
	h.state(func(s *lifecycle.State, now time.Time) {
		s.Heartbeats = &signs.Heartbeats{ReadAt: now, Nodes: 6}
	})
}

func neverSent(a *alerts.Alert) { a.UpdatedAt = time.Time{} }

// leasesBroken is the scenario of a sick node while the leases cannot be counted.
func leasesBroken(how string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.start()
		w.do(func() { w.always["heartbeats"], w.blindSince = how, time.Now() })
		w.pass(time.Minute)
		w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
		w.pass(5 * time.Minute)
	}
}

// sampledLeases is the scenario of a sick node while no lease is renewed, in a fleet whose leases
// are sampled.
func sampledLeases(_ *testing.T, w *world) {
	if w.core.sampling == signs.LeaseSampling {
		w.core.sampling = modelSampling
	}
	w.start()
	w.do(func() { w.leasesFrozen = time.Now() })
	w.pass(2 * time.Minute)
	w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
	w.pass(5 * time.Minute)
}

// dataKnockOuts are the knock-outs of invariant 6.
func dataKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"6: a missing Ready condition is no fault": {
			config: func(c *remediations.Config) { c.Policies[0].For = time.Minute },
			take: func(h *hands) {
				h.node(func(n *corev1.Node) {
					if remediations.ReadyCondition(n) == nil {
						n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: gone})
					}
				})
			},
			speaks: "6: something was done to n0, which reports no Ready condition",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.machines["n0"].mute = true; w.breakDown("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
		},
		"6: leases that nobody renews blame the control path": {
			take: beating, speaks: "6: something was done to n0, and no lease is renewed",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.leasesFrozen = time.Now() })
				w.pass(2 * time.Minute)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
		},
		"6: a sample of the leases that has stale ones proves nothing": {
			take: func(h *hands) {
				h.w.core.sampling = signs.Sampling{From: modelSampling.From, Size: 2, Stale: 2}
			},
			tale: sampledLeases, speaks: "6: something was done to n0, and no lease is renewed",
		},
		"6: a sample of the leases does not call a stale one fresh": {
			take: func(h *hands) { h.w.lies.freshSample = true }, tale: sampledLeases, speaks: "6: something was done to n0, and no lease is renewed",
		},
		"6: leases that cannot be listed hold": {take: beating, tale: leasesBroken("lost"), speaks: "6: something was done to n0, and nobody can count"},
		"6: no leases at all hold":             {take: beating, tale: leasesBroken("empty"), speaks: "6: something was done to n0, and nobody can count"},
		"6: a clock that is wrong calls nobody": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					s.Heartbeats = &signs.Heartbeats{ReadAt: now, Nodes: 6}
					hear(s, everyAlert(neverSent))
				})
			},
			speaks: "6: something was done to n0 by a Drydock whose clock",
			tale: func(_ *testing.T, w *world) {
				w.startWith(w.config, 2*time.Hour)
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
		},
		"6: an alert that is not sent again is not believed": {
			config: func(c *remediations.Config) { c.Policies[0].For = 95 * time.Second },
			take:   func(h *hands) { h.word(everyAlert(neverSent)) }, speaks: "6: something was done to n0, and the source of its alert died",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Second)
				w.do(w.killSource)
				w.pass(5 * time.Minute)
			},
		},
	}
}
