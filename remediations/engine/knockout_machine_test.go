package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// drainedThenRemade is the scenario of a node that waits for its replacement, and is created again
// on another machine.
func drainedThenRemade(t *testing.T, w *world) {
	w.start()
	w.pass(16 * time.Second)
	w.do(func() { w.ail("n0", 99) })
	require.True(t, w.until(time.Hour, func() bool { return w.waitsForReplacement("n0") }))
	w.do(func() {
		w.mood.trouble = ""
		w.remake("n0", "civo://another")
		w.ail("n0", 1)
	})
	w.pass(10 * time.Minute)
}

// waitsForReplacement holds the replacement of the node as soon as it is drained, and reports
// whether it is held.
func (w *world) waitsForReplacement(name string) bool {
	r := w.record(name)
	if r != nil && r.Step.Name == "drain" {
		w.mood.trouble = "there are two of that name"
	}
	return r != nil && r.Step.Name == "replace" && r.Phase == remediations.PhasePending && r.Hold != nil
}

// machineKnockOuts are the knock-outs of records of other machines.
func machineKnockOuts() map[string]knockOut {
	return map[string]knockOut{
		"one machine's answers stop no policy": {
			take: func(h *hands) {
				h.w.core.refusesAccount = func(_ map[string]target, c called) bool { return c.call.Stop }
			},
			speaks: "PolicyFailing: a policy is stopped",
			tale: func(_ *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.odd = map[string]error{"n0": ErrAccount}; w.ail("n0", 1) })
				w.pass(10 * time.Minute)
			},
		},
		"the record of another machine": {
			config: func(c *remediations.Config) { *c = *wholeConfig() },
			take: func(h *hands) {
				h.state(func(s *lifecycle.State, _ time.Time) {
					if old := s.Journal.Superseded[remediations.NodeRepairKey]; old != nil {
						r := old.Clone()
						r.Intent.UID, r.Intent.ProviderID = string(s.Node.UID), s.Node.Spec.ProviderID
						s.Journal.Record, s.Journal.Superseded = r, nil
					}
				})
			},
			tale: drainedThenRemade, speaks: "Machine: the attempt r",
		},
	}
}
