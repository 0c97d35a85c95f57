package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPassesLeaveRoomInAStorm: each alert written in a storm is a notice. Passes over a few
// unhealthy nodes follow each notice at once. Passes over thousands leave the CPU to the writers,
// and miss no notice.
func TestPassesLeaveRoomInAStorm(t *testing.T) {
	const notices = 200
	passes := func(ill int) (count int) {
		synctest.Test(t, func(t *testing.T) {
			e, _ := settled(t, 2000, ill)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Start(ctx) }()
			time.Sleep(time.Second)
			synctest.Wait()
			before := e.passes // the loop is at rest
			for range notices {
				e.Notice()
				time.Sleep(time.Millisecond)
			}
			time.Sleep(longestRest)
			synctest.Wait()
			require.Empty(t, e.notice, "none is left")
			count = e.passes - before
			stop()
			require.NoError(t, <-ended)
			time.Sleep(2 * time.Hour) // the one repair's call ends
		})
		return count
	}
	require.GreaterOrEqual(t, passes(10), notices-1)
	require.LessOrEqual(t, passes(2000), notices/int(2000*restPerNode/time.Millisecond)+2)
}
