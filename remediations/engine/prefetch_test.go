package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// farAway is a still world whose leases take a while to arrive.
type farAway struct {
	*still
	takes time.Duration
	lists []time.Time
	fails bool
}

func (f *farAway) Heartbeats(ctx context.Context) (map[string]signs.Lease, error) {
	f.lists = append(f.lists, time.Now())
	time.Sleep(f.takes)
	if f.fails {
		return nil, errLost
	}
	return f.still.Heartbeats(ctx)
}

// TestLeasesAreListedWhileTheAlertIsWritten: an expected alert causes one list of the leases beside
// the loop. A decision that needs the leases waits for that list, and starts no second one.
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
		e.enqueue(func() {
			p := &pass{Engine: e, ctx: ctx, now: e.Clock.Now()}
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
		e.Notice() // the pass takes them in, even if it does not need them
		synctest.Wait()
		require.Len(t, far.lists, 2)
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, far.lists[1].Add(far.takes), e.heartbeats.ReadAt)
		require.Nil(t, e.listing)
	})
}

// TestLeasesThatFailedAheadAreListedAgain: no decision uses a list that failed.
func TestLeasesThatFailedAheadAreListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := settled(t, 20, 0)
		far := &farAway{still: e.Fleet.(*still), fails: true} //nolint:forcetypeassert // settled makes it
		e.Fleet, e.heartbeats = far, nil
		e.prefetchLeases(ctx)
		synctest.Wait()
		p := &pass{Engine: e, ctx: ctx, now: e.Clock.Now(), next: e.Clock.Now().Add(idle)}
		p.readHeartbeats()
		require.Nil(t, e.heartbeats)
		require.Len(t, far.lists, 1, "who needs it in the same pass does not ask again")
		require.Equal(t, p.now.Add(outageFirst), p.next, "the next pass does")

		time.Sleep(outageFirst)
		p.readHeartbeats()
		synctest.Wait()
		require.Len(t, far.lists, 2)
		e.prefetchedLeases()
		require.Nil(t, e.heartbeats, "it fails on")

		far.fails = false
		time.Sleep(2 * outageFirst)
		p.readHeartbeats()
		synctest.Wait()
		require.Len(t, far.lists, 3)
		require.Nil(t, e.heartbeats, "the loop does not wait for a list that has failed before")
		(<-e.enqueued)()
		e.prefetchedLeases()
		require.NotNil(t, e.heartbeats)
		require.Zero(t, e.leasesOut)
	})
}

// sampledFleet is a still world of a fleet that is large enough to be sampled.
type sampledFleet struct {
	*still
	samples [][]string
	lists   int
	stale   func(node string) bool
	fails   error
}

func (f *sampledFleet) lease(node string) signs.Lease {
	l := signs.Lease{ReadAt: time.Now(), RenewedAt: time.Now(), Duration: leaseFor}
	if f.stale(node) {
		l.RenewedAt = l.ReadAt.Add(-time.Hour)
	}
	return l
}

func (f *sampledFleet) Leases(ctx context.Context, nodes []string) (map[string]signs.Lease, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("nothing bounds the sample")
	}
	f.samples = append(f.samples, nodes)
	out := map[string]signs.Lease{}
	for _, n := range nodes {
		out[n] = f.lease(n)
	}
	return out, f.fails
}

func (f *sampledFleet) Heartbeats(context.Context) (map[string]signs.Lease, error) {
	f.lists++
	out := map[string]signs.Lease{}
	for _, n := range f.nodes {
		out[n.Name] = f.lease(n.Name)
	}
	return out, nil
}

// TestTheLeasesOfALargeFleetAreSampled: if the sample proves nothing, all leases are listed in the
// same look.
func TestTheLeasesOfALargeFleetAreSampled(t *testing.T) {
	const nodes = 1000
	count := func(t *testing.T, change func(e *Engine, f *sampledFleet)) (*Engine, *sampledFleet) {
		e, ctx := settled(t, nodes, 0)
		f := &sampledFleet{still: e.Fleet.(*still), stale: func(string) bool { return false }} //nolint:forcetypeassert // settled makes it
		e.Fleet, e.heartbeats, e.Below = f, nil, rand.New(rand.NewPCG(1, 2)).IntN
		if change != nil {
			change(e, f)
		}
		time.Sleep(time.Minute)
		p := &pass{Engine: e, ctx: ctx, now: e.Clock.Now(), next: e.Clock.Now().Add(idle)}
		p.readHeartbeats()
		return e, f
	}
	all := &signs.Heartbeats{Nodes: nodes, Stale: nodes}
	synctest.Test(t, func(t *testing.T) {
		e, f := count(t, nil)
		require.Zero(t, f.lists)
		require.Len(t, f.samples, 1)
		require.Equal(t, &signs.Heartbeats{ReadAt: e.Clock.Now(), Nodes: signs.LeaseSampling.Size, Fleet: nodes}, e.heartbeats)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(f.samples[0]))), signs.LeaseSampling.Size)
	})
	for what, change := range map[string]func(e *Engine, f *sampledFleet){
		"many are stale":                      func(_ *Engine, f *sampledFleet) { f.stale = func(n string) bool { return n[len(n)-1] < '7' } },
		"the sample cannot be read":           func(_ *Engine, f *sampledFleet) { f.fails = errLost },
		"the fleet was blind":                 func(e *Engine, _ *sampledFleet) { e.heartbeats = all },
		"nothing is random":                   func(e *Engine, _ *sampledFleet) { e.Below = nil },
		"the fleet is small":                  func(e *Engine, _ *sampledFleet) { e.core.sampling.From = nodes + 1 },
		"the leases could not be listed then": func(e *Engine, _ *sampledFleet) { e.leasesOut.failed(e.Clock.Now(), errLost, outageLongest) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, f := count(t, change)
				synctest.Wait()
				e.prefetchedLeases()
				require.Equal(t, 1, f.lists)
				require.Equal(t, nodes, e.heartbeats.Nodes)
				require.Zero(t, e.heartbeats.Fleet)
				require.Equal(t, what == "many are stale", e.heartbeats.Blind() != "")
				require.Equal(t, what == "many are stale" || what == "the sample cannot be read", len(f.samples) == 1)
			})
		})
	}
}

// TestExcludedNodesAreNotCountedByTheirLeases: machines that a person has switched off for months
// prove nothing about the connection to the others. This holds for a list of all leases and for a
// sample.
func TestExcludedNodesAreNotCountedByTheirLeases(t *testing.T) {
	for _, nodes := range []int{10, 1000} {
		for what, excluded := range map[string]bool{"the control": false, "excluded": true} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, what), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e, ctx := settled(t, nodes, 0)
					off := map[string]bool{}
					fleet := e.Fleet.(*still) //nolint:forcetypeassert // settled makes it
					for i, n := range fleet.nodes {
						if i%10 < 6 {
							off[n.Name] = true
							if excluded {
								n.Labels[remediations.ExcludeLabel] = "true"
							}
						}
					}
					f := &sampledFleet{still: fleet, stale: func(node string) bool { return off[node] }}
					e.Fleet, e.heartbeats, e.Below = f, nil, rand.New(rand.NewPCG(1, 2)).IntN
					e.roster.Read(fleet.nodes)
					p := &pass{Engine: e, ctx: ctx, now: e.Clock.Now(), next: e.Clock.Now().Add(idle)}
					p.readHeartbeats()
					require.Equal(t, !excluded, e.heartbeats.Blind() != "")
					if excluded {
						require.Zero(t, e.heartbeats.Stale)
					}
				})
			})
		}
	}
}
