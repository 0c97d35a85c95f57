package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// slowLooks are looks that take too long for a side effect, and one that takes too long even for a
// hold.
var slowLooks = map[string]time.Duration{"a little": 11 * time.Second, "much": 40 * time.Second}

// heldNotes are the messages about holds with the reason.
func (w *world) heldNotes(reason remediations.Reason) (notes []string) {
	for _, e := range w.toldOf("RepairHeld") {
		if strings.HasPrefix(e.Note, string(reason)) {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// TestSlowChecksOfALocationAreReported: the looks are reported, and repeated after a pause. A move
// follows once they are faster.
func TestSlowChecksOfALocationAreReported(t *testing.T) {
	for name, takes := range slowLooks {
		t.Run(name, func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.mesh.lookTakes = takes; w.darken("n0", true) })
				w.pass(10 * time.Minute)
				r := at(w, func() *remediations.Record { return w.leaderRecords()["n0"] })
				require.NotNil(t, r)
				require.NotNil(t, r.Hold)
				require.Equal(t, remediations.ReasonLeaderUnknown, r.Hold.Reason)
				said := "looking at location l0 took " + takes.String() + ", and an observation is used for only 10s"
				require.Contains(t, r.Hold.Message, said)
				require.Len(t, w.heldNotes(remediations.ReasonLeaderUnknown), 1)
				require.Contains(t, w.heldNotes(remediations.ReasonLeaderUnknown)[0], said)
				require.Empty(t, w.moves())
				w.do(func() { w.mesh.lookTakes = 0 })
				w.pass(5 * time.Minute)
				require.Equal(t, []string{"n0>n1"}, w.moves())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.leaderOutcomes())
			})
		})
	}
}

// TestLooksBecomeSlowAfterAMove: the repair is held with a message, too, and continues.
func TestLooksBecomeSlowAfterAMove(t *testing.T) {
	for name, takes := range slowLooks {
		t.Run(name, func(t *testing.T) {
			inMesh(t, leaderConfig(), func(t *testing.T, w *world) {
				w.start()
				w.do(func() { w.mesh.members["n1"].darkLeading = true; w.darken("n0", true) })
				require.True(t, w.until(2*time.Minute, func() bool { return len(w.mesh.moved) == 1 }))
				w.do(func() { w.mesh.lookTakes = takes })
				w.pass(6 * time.Minute)
				require.Len(t, w.moves(), 1)
				require.Len(t, w.heldNotes(remediations.ReasonLeaderUnknown), 1)
				w.do(func() { w.mesh.lookTakes = 0 })
				w.pass(10 * time.Minute)
				require.Equal(t, []string{"n0>n1", "n1>n2"}, w.moves())
			})
		})
	}
}

// TestSlowChecksOfASidecarAreReported: the looks are reported, and repeated. An approval follows
// once they are faster.
func TestSlowChecksOfASidecarAreReported(t *testing.T) {
	for name, takes := range slowLooks {
		t.Run(name, func(t *testing.T) {
			inGates(t, sidecarConfig(), 1, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.gates.lookTakes = takes; w.closeOn("n0") })
				w.pass(10 * time.Minute)
				notes := w.heldNotes(remediations.ReasonSidecarUnknown)
				require.Len(t, notes, 1)
				require.Contains(t, notes[0], " took "+takes.String()+", and an observation is used for only 10s")
				require.Zero(t, w.approvalCount())
				w.do(func() { w.gates.lookTakes = 0 })
				w.pass(5 * time.Minute)
				require.Equal(t, 1, w.approvalCount())
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.sidecarOutcomes())
			})
		})
	}
}
