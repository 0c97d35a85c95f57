package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestACureThatIsNeverProvenHasAnEnd: after a move the alert has ended, or its state is unknown,
// and the location does not appear to answer. Nothing more is moved, forward or back. A person is
// informed once, and the repair ends within minutes, not a day.
func TestACureThatIsNeverProvenHasAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(*place)
		reason remediations.Reason
	}{
		"the alert has ended, and the location does not answer": {func(p *place) { p.quiet = true }, remediations.ReasonAlertResolved},
		"nobody knows anything of probes":                       {func(p *place) { p.hide(true) }, remediations.ReasonLeaderUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.mesh.members["n1"].darkLeading = true; w.darken("n0", true) })
				require.True(t, w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 }))
				w.do(func() { c.then(w.mesh.places["l0"]) })
				require.True(t, w.until(4*time.Minute, func() bool {
					r := w.leaderRecords()["n0"]
					return r.Phase == remediations.PhasePending && r.Hold.Reason == c.reason
				}))
				held := time.Now()
				require.Empty(t, at(w, func() []ledger.Slot { return mustLedger(w).Slots }), "it keeps nobody else waiting")
				deadline := w.leaderRecordOn("n0").Deadline
				require.WithinDuration(t, held.Add(16*time.Minute), deadline, 2*time.Second, "the end stands in the record")
				require.True(t, w.until(20*time.Minute, func() bool { return w.leaderRecords()["n0"].Phase == remediations.PhaseExhausted }))
				require.WithinDuration(t, deadline, time.Now(), time.Minute)
				w.pass(5 * time.Minute)
				require.Equal(t, []string{"n0>n1"}, w.moves())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeExhausted}, w.leaderOutcomes())
				require.Equal(t, map[string]string{"n1": "drydock", "n2": "by hand"}, w.keysOf("l0"), "what was moved stays moved")
				require.Len(t, w.leaderRecordOn("n0").Undo, 1, "and what it was is on record")
				id := w.leaderRecordOn("n0").ID
				w.do(func() {
					require.Empty(t, w.mesh.backs)
					told := 0
					for _, e := range w.told {
						if e.Reason == "RepairHeld" && e.Action == string(c.reason)+"-"+id {
							told++
						}
					}
					require.Equal(t, 1, told)
				})
			})
		})
	}
}

// TestAlertThatFiresAgainCausesTheNextMove: while the cure is not proven, the next candidate can
// still be tried.
func TestAlertThatFiresAgainCausesTheNextMove(t *testing.T) {
	inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.mesh.members["n1"].darkLeading = true; w.darken("n0", true) })
		require.True(t, w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 }))
		w.do(func() { w.mesh.places["l0"].quiet = true })
		require.True(t, w.until(4*time.Minute, func() bool { return w.leaderRecords()["n0"].Phase == remediations.PhasePending }))
		w.pass(10 * time.Minute)
		w.do(func() { w.mesh.places["l0"].quiet = false })
		w.pass(6 * time.Minute)
		require.Equal(t, []string{"n0>n1", "n1>n2"}, w.moves())
		require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
		requireNoLeaderTrace(t, w)
	})
}
