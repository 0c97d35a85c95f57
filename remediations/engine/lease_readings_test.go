package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/signs"
)

// lateKubelets is a still world whose kubelets stamp their leases with clocks that are 70 s behind.
type lateKubelets struct {
	*still
	silent bool
}

func (f *lateKubelets) Lease(context.Context, string) (time.Time, time.Duration, error) {
	if f.silent {
		return time.Unix(0, 0), leaseFor, nil
	}
	return time.Now().Truncate(10 * time.Second).Add(-70 * time.Second), leaseFor, nil
}

// TestANodeWhoseClockIsBehindIsNotIllAndCanBeProven: its lease is renewed in time, and only the
// timestamp is old.
func TestANodeWhoseClockIsBehindIsNotIllAndCanBeProven(t *testing.T) {
	for what, silent := range map[string]bool{"renewed": false, "the control: nobody renews it": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, ctx := settled(t, 3, 0)
				e.Fleet = &lateKubelets{still: e.Fleet.(*still), silent: silent} //nolint:forcetypeassert // settled makes it
				p := &pass{Engine: e, ctx: ctx}
				p.readLease("n0000")
				require.False(t, p.remember("n0000").lease.Fresh(), "one reading cannot tell")
				require.Equal(t, signs.Unknown, e.leaseSays(ctx, "n0000").Answer)
				time.Sleep(15 * time.Second)
				p.readLease("n0000")
				require.Equal(t, !silent, p.remember("n0000").lease.Fresh())
				time.Sleep(30 * time.Second)
				want := map[bool]signs.Answer{false: signs.Well, true: signs.Ill}[silent]
				require.Equal(t, want, e.leaseSays(ctx, "n0000").Answer)
			})
		})
	}
}
