package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// TestPassesThatWriteNothingComeLessOften: for ten minutes another writer changes the Node before
// each write of Drydock. Drydock tries again soon at first, and every two seconds at last. After a
// write that succeeds it tries again soon.
func TestPassesThatWriteNothingComeLessOften(t *testing.T) {
	for name, c := range map[string]struct {
		conf   *remediations.Config
		begins func(*world)
	}{
		"an answer":                  {modelConfig(), func(w *world) { w.edit("n2", edit(remediations.ApproveKey, "zzzzzz")) }},
		"an intent":                  {modelConfig(), func(w *world) { w.ail("n0", 1) }},
		"an intent about a location": {leaderConfig(), func(w *world) { w.darken("n0", true) }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.conf, 6, func(t *testing.T, w *world) {
				w.do(w.spread)
				i := w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.always["write"] = "conflict"; c.begins(w) })
				require.True(t, w.until(5*time.Minute, func() bool { return i.asked["write"] > 0 }))
				require.GreaterOrEqual(t, w.askedFor(i, "write"), 2, "at first it tries again soon")
				w.do(func() { clear(i.asked) })
				w.pass(10 * time.Minute)
				require.Less(t, w.askedFor(i, "write"), 500)
				require.Less(t, w.askedFor(i, "save"), 500)
				require.Less(t, w.askedFor(i, "changed"), 500)
				w.do(func() { clear(w.always) })
				w.pass(10 * time.Second)
				w.do(func() {
					clear(i.asked)
					w.faults["write"] = []string{"conflict"}
					w.edit("n5", edit(remediations.ApproveKey, "zzzzzz"))
				})
				w.pass(500 * time.Millisecond)
				require.GreaterOrEqual(t, w.askedFor(i, "write"), 2)
				require.NotContains(t, w.nodeOf("n5").Annotations, remediations.ApproveKey, "it tries again soon after a write that succeeded")
			})
		})
	}
}
