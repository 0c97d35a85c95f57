package crash

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/soak"
)

// TestLeadersAreKilled makes two replicas repair several nodes, some at the same time, while the
// leader is killed every few seconds. A killed replica is started again, and soon becomes the
// other's successor.
func TestLeadersAreKilled(t *testing.T) {
	t.Parallel()
	y := newYard(t, shared(t), options{nodes: fleet(), replicas: 2, slots: 2, attempts: 10})
	fallen := y.fell(seeded(t), func(r *replica, _ *rand.Rand) { r.Kill() })
	y.repairAll()
	require.GreaterOrEqual(t, fallen(), 2, "leaders that were killed")
}

// TestLeadersStall is the same test with leaders that are suspended for some time and then
// continue. The time is shorter or longer than their Lease. A step waits longer for its proof than
// a call may be late, as in any sensible plan. So a late call can only belong to the attempt that
// is on record.
func TestLeadersStall(t *testing.T) {
	t.Parallel()
	y := newYard(t, shared(t), options{nodes: fleet(), replicas: 2, slots: 2, attempts: 10})
	fallen := y.fell(seeded(t), func(r *replica, random *rand.Rand) {
		y.stop(r)
		<-time.After(time.Duration(500+random.IntN(12000)) * time.Millisecond)
		y.signal(r, syscall.SIGCONT)
	})
	y.repairAll()
	require.GreaterOrEqual(t, fallen(), 1, "leaders that were stopped")
}

func fleet() int {
	if soak.Whole() {
		return 20
	}
	return 6
}

// repairAll makes all nodes fail and waits until all are cured. The plan has spare attempts, so no
// repair may be exhausted, whatever is lost on the way.
func (y *yard) repairAll() {
	y.t.Helper()
	y.start()
	for i := range y.nodes {
		y.fail(i)
	}
	y.kept()
	for _, node := range y.nodes {
		require.NotEmpty(y.t, y.provider.calls(node))
	}
	y.view.mu.Lock()
	defer y.view.mu.Unlock()
	require.Equal(y.t, y.slots, y.view.most, "as many slots at once as the limit allows")
}

// fell makes one leader after the other fall, until the returned function is called, which returns
// how many have fallen. A leader falls a moment after its first change, or after a few changes,
// whichever comes first. The number of changes ensures that a fast Drydock loses its leaders, too.
// A slow Drydock may never reach its call, so many leaders fall and then the last one stays.
func (y *yard) fell(random *rand.Rand, how func(*replica, *rand.Rand)) (stop func() int) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	count, most := 0, 5*fleet()/2
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for count < most {
			before := y.renewals()
			moment, few := time.Duration(1000+random.IntN(2000))*time.Millisecond, int64(4+random.IntN(11))
			var led bool        // whether a replica leads again
			var then int64      // the changes until then
			var began time.Time // since when there are more changes
			for began.IsZero() || (time.Since(began) < moment && y.changes.Load()-then < few) {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				switch {
				case !led && y.renewals() > before:
					led, then = true, y.changes.Load()
				case led && began.IsZero() && y.changes.Load() > then:
					began = time.Now()
				}
			}
			how(y.leading(), random)
			count++
		}
	})
	end := sync.OnceValue(func() int {
		cancel()
		work.Wait()
		return count
	})
	y.t.Cleanup(func() { end() })
	return end
}

// renewals counts how often any replica has renewed the leader's Lease.
func (y *yard) renewals() int64 {
	var n int64
	for _, r := range y.replicas {
		n += r.renewed.Load()
	}
	return n
}
