package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/marks"
)

// signKnockOuts are the knock-outs of wrong signs: old marks, unconfirmed conditions, numbers that
// decrease with the fault.
func signKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"a mark with a date holds for its time": {
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) { c.HoldWhen = marks.List{} })
			},
			tale: after(func(w *world) { w.mark("n0", "kured", time.Now().Add(-10*time.Minute)) }), speaks: "NodeLeaving: r",
		},
		"a date from before the Node is none": {
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, now time.Time) {
					s.Node = s.Node.DeepCopy()
					s.Node.CreationTimestamp.Time = now.Add(-1000 * time.Hour)
				})
			},
			tale: after(func(w *world) { w.mark("n0", "cluster-autoscaler", time.Now().Add(-72*time.Hour)) }), speaks: "NodeLeaving: r",
		},
		"liveness: a mark that its owner forgot holds nothing": {
			take: func(h *hands) {
				h.config(func(c *remediations.Config, _ *remediations.Policy) {
					c.HoldWhen = marks.Shipped()
					for i := range c.HoldWhen {
						c.HoldWhen[i].BelievedFor = 0
					}
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(time.Minute)
				w.live()
			},
			speaks: "liveness: the fresh fault of n5 is not repaired",
		},
		"5: a condition that nobody confirms is no data": {
			config: doubts,
			take: func(h *hands) {
				h.config(func(_ *remediations.Config, p *remediations.Policy) {
					w := *p.Witness
					w.Signs = slices.Clone(w.Signs)
					for i := range w.Signs {
						w.Signs[i].StaleAfter = 0
					}
					p.Witness = &w
				})
			},
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.do(func() { w.loseMonitor("n0") })
				w.pass(staleAfter + time.Minute)
				w.do(func() { w.breakDown("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
			speaks: "5: a call for n0, and nobody has confirmed since",
		},
		"7: a machine that comes back with fewer GPUs is not cured": {
			config: countsGPUs,
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					l := s.Ledger.Clone()
					l.GPUs = nil
					s.Ledger = l
					if r := s.Journal.Record; r != nil && r.Intent != nil {
						r = r.Clone()
						r.Intent.GPUs = 0
						s.Journal.Record = r
					}
				})
			},
			tale: func(t *testing.T, w *world) {
				w.do(w.haveGPUs)
				w.start()
				w.pass(time.Minute)
				w.do(func() { w.loseGPU("n0", false); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(5*time.Minute, func() bool { return len(w.calls) > 0 }))
				w.pass(9 * time.Minute)
			},
			speaks: "7: Recovered of n0, which has 7 of the 8 GPUs",
		},
		"the ledger keeps how many GPUs a machine had": {
			take: func(h *hands) { h.w.in(2*time.Minute, func() { h.w.lies.forgetGPUs = true }) },
			tale: func(t *testing.T, w *world) {
				w.do(w.haveGPUs)
				w.start()
				w.pass(3 * time.Minute)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				w.pass(5 * time.Minute)
			},
			speaks: "GPUs: the ledger says that ",
		},
	}
}

// TestAConditionThatIsConfirmedIsData: a machine that has been broken for longer than staleAfter is
// repaired while its monitor confirms the fault.
func TestAConditionThatIsConfirmedIsData(t *testing.T) {
	c := modelConfig()
	doubts(c)
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		w.do(w.monitor)
		w.start()
		w.do(func() {
			w.machines["n0"].silenced = true
			w.breakDown("n0", 1)
			w.post("n0", remediations.StatusFiring)
		})
		w.pass(3 * staleAfter)
		require.Zero(t, w.callCount(), "the control: it is silenced")
		w.do(func() { w.machines["n0"].silenced = false })
		require.True(t, w.until(2*time.Minute, func() bool { return len(w.calls) == 1 }))
	})
}
