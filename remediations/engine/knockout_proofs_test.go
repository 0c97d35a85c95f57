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

// cured is the scenario of a reboot that leaves something wrong.
func cured(then func(w *world)) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.start()
		w.do(func() { w.ail("n0", 1) })
		w.until(time.Minute, func() bool { return len(w.calls) == 1 })
		w.do(func() { then(w) })
		w.pass(9 * time.Minute)
	}
}

// record gives Decide another record while a proof is awaited.
func (h *hands) record(change func(*remediations.Record)) {
	h.state(func(s *lifecycle.State, _ time.Time) {
		if r := s.Journal.Record; r != nil && r.Phase == remediations.PhaseVerifying {
			c, i := *r, *r.Intent
			c.Intent = &i
			change(&c)
			s.Journal.Record = &c
		}
	})
}

// proofKnockOuts are the knock-outs of invariant 7.
func proofKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"7: a reboot is proven by a new boot ID": {
			take:   func(h *hands) { h.record(func(r *remediations.Record) { r.Intent.BootID = "another" }) },
			speaks: "7: Recovered, and the boot ID",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.mood.idle = true; w.ail("n0", 1) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.pass(time.Minute)
				w.do(func() { w.heal("n0") })
				w.pass(5 * time.Minute)
			},
		},
		"7: a restart is proven by the host's own word": {
			config: func(c *remediations.Config) {
				c.Policies[0].Plan = []remediations.Step{{Name: "restart-kubelet", Wait: 10 * time.Minute, Attempts: 1}}
				c.Provided["restart-kubelet"] = true
			},
			take: func(h *hands) {
				h.record(func(r *remediations.Record) { r.Intent.Outcome = remediations.CallAccepted })
			},
			speaks: "7: Recovered, and nobody saw the kubelet",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.mood.cut = true; w.ail("n0", 1) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.pass(time.Minute)
				w.do(func() { w.heal("n0") })
				w.pass(5 * time.Minute)
			},
		},
		"7: the node is Ready": {
			take: func(h *hands) {
				h.node(func(n *corev1.Node) {
					n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready})
				})
			},
			tale: cured(func(w *world) { w.machines["n0"].mute = true }), speaks: "7: Recovered of n0, which is not Ready",
		},
		"7: its lease is fresh": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					s.Lease = &signs.Lease{ReadAt: now, RenewedAt: now, Duration: leaseFor}
				})
			},
			tale: cured(func(w *world) { w.machines["n0"].leaseFrozen = time.Now().Add(-time.Hour) }), speaks: "7: Recovered of n0, whose lease is stale",
		},
		"7: its alert is gone": {
			take: func(h *hands) {
				h.word(func(_ int, s *lifecycle.State, r *alerts.Replica) {
					if rec := s.Journal.Record; rec != nil && rec.Phase == remediations.PhaseVerifying {
						clear(r.Alerts)
					}
				})
			},
			tale: cured(func(w *world) { w.machines["n0"].stuck = true }), speaks: "7: Recovered of n0, and nobody said",
		},
		"7: while its source lives": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					hear(s, func(_ int, _ *lifecycle.State, r *alerts.Replica) { r.Watchdog, r.WatchdogAt = true, now })
					if s.Snapshot != nil {
						s.Snapshot.WatchdogMisses = 0
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 1) })
				w.until(time.Minute, func() bool { return len(w.calls) == 1 })
				w.do(w.killSource)
				w.pass(9 * time.Minute)
			},
			speaks: "7: Recovered of n0, and the source",
		},
		"7: for as long as proofFor": {
			config: func(c *remediations.Config) { c.Policies[0].ProofFor = 5 * time.Minute },
			take:   func(h *hands) { h.config(func(_ *remediations.Config, p *remediations.Policy) { p.ProofFor = 0 }) },
			tale:   cured(func(*world) {}), speaks: "7: Recovered of n0 after",
		},
		"7: no phase outlives its deadline": {
			take: func(h *hands) {
				h.record(func(r *remediations.Record) { r.Deadline = r.Deadline.Add(12 * time.Hour) })
			},
			speaks: "7: n0 is Verifying",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.ail("n0", 9) })
				w.pass(15 * time.Minute)
				w.do(func() { w.overdue(time.Minute) })
			},
		},
	}
}
