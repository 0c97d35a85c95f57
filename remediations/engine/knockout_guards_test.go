package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// breakers hides from Decide the fleet's breakers in that state.
func breakers(state ledger.BreakerState) func(*hands) {
	return func(h *hands) {
		h.state(func(s *lifecycle.State, _ time.Time) {
			f := *s.Fleet
			f.Breakers = maps.Clone(f.Breakers)
			maps.DeleteFunc(f.Breakers, func(_ string, b ledger.Breaker) bool { return b.State == state })
			s.Fleet = &f
		})
	}
}

func (h *hands) ledger(change func(*ledger.Ledger)) {
	h.state(func(s *lifecycle.State, _ time.Time) {
		if s.Ledger != nil {
			s.Ledger = s.Ledger.Clone()
			change(s.Ledger)
		}
	})
}

// again is the scenario of a node that is cured, and fails again after a while.
func again(while time.Duration) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		sickNode(t, w)
		w.pass(while)
		w.do(func() { w.ail("n0", 1) })
		w.pass(2 * time.Minute)
	}
}

// wideFirst applies the network's manifest again if half of the nodes are unhealthy, before it
// reboots.
func wideFirst(c *remediations.Config) {
	c.Policies[0].Plan = append([]remediations.Step{{Name: "apply-cni", Wait: 2 * time.Minute, Attempts: 1}}, c.Policies[0].Plan...)
	c.Provided["apply-cni"], c.ClusterWide.MinShare.Value = true, 50
}

// inWaves is the scenario of that many nodes that fail at once, and again when they are healthy.
func inWaves(nodes, waves int) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		for range waves {
			w.do(func() {
				for _, n := range nodeNames[:nodes] {
					w.machines[n].kubelet = true
					w.ail(n, 1)
				}
			})
			w.pass(20 * time.Minute)
		}
	}
}

// guardKnockOuts are the knock-outs of guards that count, because checking them takes more than one
// decision. TestNoGuardIsIdle tests all guards with one decision each.
func guardKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"FleetUnhealthy: open": {
			take: breakers(ledger.BreakerOpen), speaks: "FleetUnhealthy: an intent on n0, and cluster is in a storm",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					for _, n := range nodeNames[:5] {
						w.ail(n, 1)
					}
				})
				w.pass(5 * time.Minute)
			},
		},
		"ClusterWide: so many nodes": {
			config: wideFirst, tale: inWaves(2, 1), speaks: "ClusterWide: apply-cni of r",
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.ClusterWide = remediations.ClusterWide{} })
			},
		},
		"ClusterWide: once an hour": {
			config: wideFirst, tale: inWaves(4, 2), speaks: "ClusterWide: apply-cni of r",
			take: func(h *hands) { h.ledger(func(l *ledger.Ledger) { l.Wide = nil }) },
		},
		"FleetUnhealthy: half-open": {
			config: three, take: breakers(ledger.BreakerHalfOpen), speaks: "FleetUnhealthy: r",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					for _, n := range nodeNames[:5] {
						w.ail(n, 1)
					}
				})
				w.pass(10 * time.Second)
				w.do(func() {
					for _, n := range nodeNames[2:] {
						w.heal(n)
					}
				})
				w.pass(20 * time.Minute)
			},
		},
		"PolicyFailing": {
			nodes: 10, config: func(c *remediations.Config) { c.Policies[0].Plan[0].Attempts = 1 },
			take:   func(h *hands) { h.ledger(func(l *ledger.Ledger) { l.Status.Exhausted = nil }) },
			speaks: "PolicyFailing: the intent",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() {
					for _, n := range nodeNames[:4] {
						w.ail(n, 9)
					}
				})
				w.pass(2 * time.Hour)
			},
		},
		"TooYoung": {
			config: func(c *remediations.Config) { c.Policies[0].For = 4 * time.Minute },
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					s.Journal.Alerts = slices.Clone(s.Journal.Alerts)
					for i := range s.Journal.Alerts {
						s.Journal.Alerts[i].ReceivedAt = now.Add(-time.Hour) // as its sender claims
					}
				})
			},
			tale: after(func(w *world) { w.machines["n0"].backdated = true }), speaks: "TooYoung: r",
		},
		"AwaitingApproval": {
			config: func(c *remediations.Config) { c.Policies[0].Approval = true },
			take:   func(h *hands) { h.config(func(_ *remediations.Config, p *remediations.Policy) { p.Approval = false }) },
			tale:   sickNode, speaks: "AwaitingApproval: r",
		},
		"Cooldown": {
			config: func(c *remediations.Config) { c.Policies[0].Cooldown = time.Hour },
			take:   func(h *hands) { h.config(func(_ *remediations.Config, p *remediations.Policy) { p.Cooldown = 0 }) },
			tale:   again(time.Minute), speaks: "Cooldown: r",
		},
		"Relapse": {
			config: func(c *remediations.Config) { c.Policies[0].RelapseWindow = time.Hour },
			take:   func(h *hands) { h.config(func(_ *remediations.Config, p *remediations.Policy) { p.RelapseWindow = 0 }) },
			tale:   again(10 * time.Minute), speaks: "Relapse: r",
		},
		"RepairsSpent": {
			config: func(c *remediations.Config) { c.Limits.RepairsPerNode = 1 },
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.Limits.RepairsPerNode = 99 })
			},
			tale: again(10 * time.Minute), speaks: "RepairsSpent: r",
		},
	}
}
