package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

// TestANodeWithAWrongClockIsRepairedOnlyWhenItIsIll: a wrong clock alone is not a
// fault, and it hides no fault.
func TestANodeWithAWrongClockIsRepairedOnlyWhenItIsIll(t *testing.T) {
	for what, ahead := range map[string]time.Duration{"ahead": 20 * time.Minute, "behind": -20 * time.Minute} {
		t.Run(what, func(t *testing.T) {
			c, ctx := start(t)
			name := another(ctx, t, c)
			host, before := c.Hosts.Host(name), lastRepair(node(t, c, name))
			restore, err := c.SetClock(ctx, host, ahead)
			require.NoError(t, err)
			t.Cleanup(func() {
				ctx := context.WithoutCancel(ctx)
				require.NoError(t, restore(ctx))
				awaitClock(ctx, t, c, name, 0)
			})
			awaitClock(ctx, t, c, name, ahead)
			// No alert has longer to fire than NodeHeartbeatLost: its eight minutes and its for.
			require.Never(t, func() bool {
				n, err := c.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
				return err == nil && (!remediations.Ready(n) || remediations.InFlight(n) != nil)
			}, 11*time.Minute/cluster.Faster, tick, "the node is Ready, and nothing repairs it")
			require.Equal(t, before, lastRepair(node(t, c, name)))

			systemctl(ctx, t, host, "kill", "--signal=STOP", hosts.KubeletUnit)
			repair := awaitRepair(ctx, t, c, name, before)
			require.Equal(t, remediations.OutcomeRecovered, repair.Outcome)
			require.Equal(t, "restart-kubelet:1", steps(repair))
			awaitClock(ctx, t, c, name, ahead)
		})
	}
}

// awaitClock waits until the node's Lease was renewed twice by a clock that is ahead by so much.
func awaitClock(ctx context.Context, t *testing.T, c *cluster.Cluster, name string, ahead time.Duration) {
	t.Helper()
	seen := map[time.Time]bool{}
	require.Eventually(t, func() bool {
		lease, err := c.Client().CoordinationV1().Leases("kube-node-lease").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		off := time.Until(lease.Spec.RenewTime.Time) - ahead
		if off.Abs() < time.Minute {
			seen[lease.Spec.RenewTime.Time] = true
		}
		return len(seen) >= 2
	}, lab.Patience, tick, "the lease of %s is ahead by %s", name, ahead)
}
