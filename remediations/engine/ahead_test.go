package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// farAway is a still world whose leases take a while to come.
type farAway struct {
	*still
	takes time.Duration
	lists []time.Time
	fails bool
}

func (f *farAway) Heartbeats(ctx context.Context) (map[string]remediations.Lease, error) {
	f.lists = append(f.lists, time.Now())
	time.Sleep(f.takes)
	if f.fails {
		return nil, errLost
	}
	return f.still.Heartbeats(ctx)
}

// TestLeasesAreListedWhileTheAlertIsWritten: an alert that is expected has them listed beside the loop, once, and who needs
// them waits for those and for no second list.
func TestLeasesAreListedWhileTheAlertIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := settled(t, 20, 0)
		far := &farAway{still: e.Fleet.(*still), takes: 100 * time.Millisecond} //nolint:forcetypeassert // settled makes it
		e.Fleet, e.heartbeats = far, nil
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- e.Start(ctx) }()
		synctest.Wait()
		require.Empty(t, far.lists)
		began := time.Now()
		for range 3 {
			e.Expect()
			synctest.Wait()
		}
		require.Len(t, far.lists, 1, "it is under way")

		time.Sleep(50 * time.Millisecond)
		e.aside(func() {
			p := &passing{Engine: e, ctx: ctx, now: e.Clock.Now()}
			p.readHeartbeats()
			require.Equal(t, began.Add(far.takes), e.heartbeats.ReadAt)
			require.Equal(t, began.Add(far.takes), e.Clock.Now(), "it waited for the rest of it")
		})
		synctest.Wait()
		time.Sleep(time.Second)
		e.Expect()
		synctest.Wait()
		require.Len(t, far.lists, 1, "they are good for a while")

		time.Sleep(beatsGood)
		e.Expect()
		time.Sleep(far.takes + time.Millisecond)
		e.Notice() // the pass takes them in, whoever needs them
		synctest.Wait()
		require.Len(t, far.lists, 2)
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, far.lists[1].Add(far.takes), e.heartbeats.ReadAt)
		require.Nil(t, e.listing)
	})
}

// TestLeasesThatFailedAheadAreListedAgain: nothing rests on what did not come.
func TestLeasesThatFailedAheadAreListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := settled(t, 20, 0)
		far := &farAway{still: e.Fleet.(*still), fails: true} //nolint:forcetypeassert // settled makes it
		e.Fleet, e.heartbeats = far, nil
		e.listAhead(ctx)
		synctest.Wait()
		p := &passing{Engine: e, ctx: ctx, now: e.Clock.Now(), next: e.Clock.Now().Add(idle)}
		p.readHeartbeats()
		require.Nil(t, e.heartbeats)
		require.Len(t, far.lists, 1, "who needs it in the same pass does not ask again")
		require.Equal(t, p.now.Add(outageFirst), p.next, "the next pass does")

		time.Sleep(outageFirst)
		p.readHeartbeats()
		synctest.Wait()
		require.Len(t, far.lists, 2)
		e.listedAhead()
		require.Nil(t, e.heartbeats, "it fails on")

		far.fails = false
		time.Sleep(2 * outageFirst)
		p.readHeartbeats()
		synctest.Wait()
		require.Len(t, far.lists, 3)
		require.Nil(t, e.heartbeats, "the loop does not wait for a list that has failed before")
		(<-e.asides)()
		e.listedAhead()
		require.NotNil(t, e.heartbeats)
		require.Zero(t, e.leasesOut)
	})
}
