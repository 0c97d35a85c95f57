package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// S3-16, as in the policy of a GPU node: the fault must have lasted, and the last reboot must have
// had its time, also across a restart of Drydock.
func TestNoRebootBeforeTheFaultAndTheLastOneAreOldEnough(t *testing.T) {
	const lasted, wait = 15 * time.Minute, 40 * time.Minute
	c := modelConfig()
	c.Policies[0].For, c.Policies[0].Plan[0].Wait, c.Policies[0].Plan[0].Attempts = lasted, wait, 3
	inWorld(t, c, 6, func(t *testing.T, w *world) {
		i := w.start()
		began := time.Now()
		w.do(func() { w.ail("n0", 99) })
		w.pass(lasted + wait/2)
		require.Equal(t, 1, w.callCount())
		i.cancel()
		w.start()
		w.pass(6 * time.Hour)

		require.Equal(t, 3, w.callCount(), "capped")
		last := began.Add(lasted - wait)
		for _, call := range at(w, func() []providerCall { return slices.Clone(w.calls) }) {
			require.GreaterOrEqual(t, call.at.Sub(last), wait)
			last = call.at
		}
	})
}
