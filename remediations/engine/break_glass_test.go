package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestBreakGlassExpiresAfterAnHour: Drydock removes break-glass after an hour, and the hour
// survives a restart.
func TestBreakGlassExpiresAfterAnHour(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.breakGlass("n0"); w.ail("n0", 1) })
		w.pass(40 * time.Minute)
		w.restart(w.config)
		w.pass(15 * time.Minute)
		require.Zero(t, w.callCount())
		require.Contains(t, w.nodeOf("n0").Annotations, remediations.BreakGlassKey)
		w.pass(10 * time.Minute)
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.BreakGlassKey)
		require.Equal(t, 1, w.callCount())
	})
}

// TestAnotherReasonBeginsAnotherHour: another reason for break-glass starts another hour, and is
// announced.
func TestAnotherReasonBeginsAnotherHour(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		w.do(func() { w.breakGlass("n0") })
		w.pass(40 * time.Minute)
		w.do(func() { w.breakGlass("n0") })
		w.pass(50 * time.Minute)
		require.Contains(t, w.nodeOf("n0").Annotations, remediations.BreakGlassKey)
		require.Len(t, w.toldOf("BreakGlassSet"), 2)
		w.pass(15 * time.Minute)
		require.NotContains(t, w.nodeOf("n0").Annotations, remediations.BreakGlassKey)
	})
}

// TestBreakGlassExpiresOnlyByAConfirmedClock: the hour begins when the leases confirm the
// clock. Who set break-glass is read and announced once meanwhile.
func TestBreakGlassExpiresOnlyByAConfirmedClock(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(w *world)
		known bool // the leases were counted before
	}{
		"the leases were never listed":      {func(w *world) { w.always["heartbeats"] = "lost" }, false},
		"the leases cannot be listed now":   {func(w *world) { w.always["heartbeats"] = "lost" }, true},
		"the leases are older than allowed": {func(w *world) { w.leasesFrozen = time.Now().Add(-time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
				if !c.known {
					w.do(func() { c.wrong(w) })
				}
				i := w.start()
				w.pass(16 * time.Second)
				if c.known {
					w.do(func() { w.breakGlass("n1") })
					w.pass(time.Minute)
					w.do(func() { w.unhold("n1"); c.wrong(w) })
					w.pass(time.Minute)
				}
				asked := w.askedFor(i, "setBy")
				since := func() map[string]ledger.BreakGlass {
					return at(w, func() map[string]ledger.BreakGlass { return mustLedger(w).Status.BreakGlass })
				}
				w.do(func() { w.breakGlass("n0") })
				w.pass(5 * time.Minute)
				require.Empty(t, since())
				require.Equal(t, asked+1, w.askedFor(i, "setBy"))
				w.do(func() { clear(w.always); w.leasesFrozen = time.Time{} })
				w.pass(2 * time.Minute)
				require.Contains(t, since(), "n0")
				require.WithinDuration(t, time.Now(), since()["n0"].Since, 2*time.Minute)
			})
		})
	}
}

// TestBreakGlassIsAnnouncedFromTheStoredNode: the leader announces each value once, also across a
// restart, with the field manager that the API server recorded.
func TestBreakGlassIsAnnouncedFromTheStoredNode(t *testing.T) {
	inWorld(t, modelConfig(), 6, func(t *testing.T, w *world) {
		w.start()
		w.pass(16 * time.Second)
		announced := func() (notes []string) {
			return at(w, func() []string {
				for _, e := range w.told {
					if e.Reason == "BreakGlassSet" {
						notes = append(notes, e.Note)
					}
				}
				return notes
			})
		}
		require.Empty(t, announced(), "the control")
		w.do(func() { w.breakGlass("n0") })
		w.pass(time.Minute)
		require.Len(t, announced(), 1)
		require.Contains(t, announced()[0], `drydock.dev/break-glass was set by the field manager "kubectl-annotate" at `)
		w.restart(w.config)
		w.pass(time.Minute)
		require.Len(t, announced(), 1, "the ledger has it already")
		w.do(func() { w.unhold("n0") })
		w.pass(time.Minute)
		w.do(func() { w.breakGlass("n0") })
		w.pass(time.Minute)
		require.Len(t, announced(), 2)
	})
}

// TestManyBreakGlassesAreAnnouncedWithFewReads: of a dozen at once, only the first ones name who
// set them.
func TestManyBreakGlassesAreAnnouncedWithFewReads(t *testing.T) {
	inWorld(t, modelConfig(), 12, func(t *testing.T, w *world) {
		w.do(func() {
			for i := range 12 {
				w.breakGlass(fmt.Sprintf("n%d", i))
			}
		})
		w.start()
		w.pass(time.Minute)
		named := 0
		for _, e := range w.toldOf("BreakGlassSet") {
			if strings.Contains(e.Note, "by the field manager") {
				named++
			}
		}
		require.Len(t, w.toldOf("BreakGlassSet"), 12)
		require.Equal(t, breakGlassReads, named)
	})
}

// TestTheLedgerRemembersABoundedNumberOfBreakGlasses: a person may set break-glass on all nodes at
// once. The nodes beyond the limit wait for their hour.
func TestTheLedgerRemembersABoundedNumberOfBreakGlasses(t *testing.T) {
	const more = 5
	inWorld(t, modelConfig(), ledger.BreakGlassMost+more, func(t *testing.T, w *world) {
		w.do(func() {
			for name := range w.nodes {
				w.breakGlass(name)
			}
		})
		w.start()
		w.pass(time.Minute)
		require.Equal(t, ledger.BreakGlassMost, len(at(w, w.book).Status.BreakGlass)) //nolint:testifylint // Len prints all of them
		w.pass(time.Hour)
		for range 20 { // a pass removes only as many as its time allows
			w.pass(time.Minute)
		}
		since := at(w, w.book).Status.BreakGlass
		require.Len(t, since, more, "those that were not remembered before")
		for name := range since {
			require.Contains(t, w.nodeOf(name).Annotations, remediations.BreakGlassKey)
		}
	})
}

// setBy is a NodeWriter that names who set the annotation, as the API server recorded it.
type setBy struct {
	NodeWriter
	manager string
	err     error
}

func (s setBy) SetBy(context.Context, string, string) (string, time.Time, error) {
	return s.manager, time.Time{}, s.err
}

// noteKeeper keeps the notes of Events.
type noteKeeper struct{ notes []string }

func (h *noteKeeper) Event(_ string, e Event) { h.notes = append(h.notes, e.Note) }

// TestBreakGlassIsAnnouncedWithoutItsManager: the Event leaves out the unknown name.
func TestBreakGlassIsAnnouncedWithoutItsManager(t *testing.T) {
	for name, c := range map[string]struct {
		writer setBy
		named  bool
		logs   int
	}{
		"kubectl":                        {setBy{manager: "kubectl"}, true, 0},
		"managedFields name nobody":      {setBy{}, false, 0},
		"the API server cannot be asked": {setBy{err: errLost}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			o, events := logged(&lines), &noteKeeper{}
			o.Writer, o.Events = c.writer, events
			p := &pass{Engine: &Engine{Options: o, memory: map[string]*memory{}}, ctx: t.Context(), now: time.Now()}
			reads := breakGlassReads
			p.announceBreakGlass(newStill(modelConfig(), 1, 0).nodes[0], "why", &reads)
			require.Len(t, events.notes, 1)
			require.Equal(t, c.named, strings.Contains(events.notes[0], "by the field manager"))
			require.Len(t, lines, c.logs)
		})
	}
}
