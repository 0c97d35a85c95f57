package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

var many = remediations.Quantity{Value: 99}

// sickNodes is the scenario of several nodes that fail at once.
func sickNodes(names ...string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() {
			for _, n := range names {
				w.ail(n, 1)
				w.post(n, remediations.StatusFiring)
			}
		})
		w.pass(5 * time.Minute)
	}
}

func three(c *remediations.Config) { c.Limits.Concurrent.Value = 3 }

func noControlPlane(n *corev1.Node) { delete(n.Labels, "node-role.kubernetes.io/control-plane") }

// limitKnockOuts are the knock-outs of invariant 3.
func limitKnockOuts() map[string]knockOut {
	one := remediations.Quantity{Value: 1}
	return map[string]knockOut{
		"3: the cluster's limit": {
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.Limits.Concurrent = many })
			},
			tale: sickNodes("n0", "n1", "n2"), speaks: "3: 2 in flight in the cluster",
		},
		"3: the zone's limit": {
			nodes: 10, layout: layout{2, 1, 0}, config: func(c *remediations.Config) { three(c); c.Limits.ConcurrentPerZone = one },
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.Limits.ConcurrentPerZone = many })
			},
			tale: sickNodes("n0", "n2"), speaks: "3: 2 in flight in the zone",
		},
		"3: the pool's limit": {
			nodes: 10, layout: layout{10, 2, 0}, config: func(c *remediations.Config) { three(c); c.Limits.ConcurrentPerPool = one },
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.Limits.ConcurrentPerPool = many })
			},
			tale: sickNodes("n0", "n2"), speaks: "3: 2 in flight in the pool",
		},
		"3: control-plane nodes one at a time": {
			nodes: 10, layout: layout{10, 1, 5}, config: three,
			take: func(h *hands) { h.node(noControlPlane) }, tale: sickNodes("n0", "n1"),
			speaks: "3: another control-plane node is in flight",
		},
		"3: the control plane keeps its quorum": {
			nodes: 10, layout: layout{10, 1, 3},
			take: func(h *hands) { h.node(noControlPlane) }, speaks: "3: the intent on n0 leaves fewer than 2",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(time.Second)
				w.do(func() { w.ail("n0", 1); w.ail("n1", 1) })
				w.pass(8 * time.Second) // the cache now has both
				w.do(func() { w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
		},
		"3: the ledger's compare-and-swap": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.ignoreLedgerVersion = true }) }, speaks: "3: 2 in flight",
			tale: func(_ *testing.T, w *world) {
				first := w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					first.stall, first.stallAt = 8*time.Second, "save r"
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(time.Second) // it has decided about n0, and sleeps before it saves the slot
				w.do(func() {
					w.ail("n1", 1)
					w.machines["n1"].since = time.Now().Add(-time.Minute) // the older fault goes first
					w.post("n1", remediations.StatusFiring)
				})
				w.start()
				w.pass(5 * time.Minute)
			},
		},
		"3: what the ledger holds counts where the Nodes do not show it": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					nodes := at(h.w, func() (out []*corev1.Node) {
						for _, n := range h.w.instances[len(h.w.instances)-1].view {
							out = append(out, n)
						}
						return out
					})
					s.Fleet = fleet.New(s.Config, nodes, &ledger.Ledger{}, func(string) bool { return false }, now)
				})
			},
			speaks: "3: 2 in flight",
			tale: func(_ *testing.T, w *world) {
				first := w.start()
				w.do(func() { w.ail("n1", 1); w.machines["n1"].silenced = true; w.post("n1", remediations.StatusFiring) })
				w.pass(30 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.until(10*time.Second, func() bool { return len(w.calls) == 1 })
				w.do(func() { // the next one's cache is seconds behind
					first.dead, w.lag, w.machines["n1"].silenced = true, 99, false
				})
				w.start()
				w.pass(5 * time.Minute)
			},
		},
		"3: a drained node that waits keeps its place": {
			nodes: 10, config: func(c *remediations.Config) { *c = *planned("drain", "replace") },
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					l := s.Ledger
					if l == nil {
						l = &ledger.Ledger{}
					}
					nodes := at(h.w, func() (out []*corev1.Node) {
						for _, n := range h.w.instances[len(h.w.instances)-1].view {
							if isParked(n) {
								n = n.DeepCopy()
								n.Spec.Unschedulable = false
							}
							out = append(out, n)
						}
						return out
					})
					s.Fleet = fleet.New(s.Config, nodes, l, func(string) bool { return false }, now)
				})
			},
			speaks: "3: 2 in flight in the cluster",
			tale: func(t *testing.T, w *world) {
				w.beforeDrain = func() { w.mood.trouble = "the pool is not ready" }
				sickNode(t, w)
				w.do(func() { w.ail("n1", 9); w.post("n1", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
		},
		"3: the slot is taken before the intent": {
			take: func(h *hands) { h.w.do(func() { h.w.lies.forgetSlots = true }) }, tale: sickNode, speaks: "3: the intent r",
		},
	}
}
