package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/remediations"
)

// TestAnUpgradeInMidRepairLosesNothing: an upgrade, and then a rollback, each replace all of
// Drydock's pods. The same repair continues and ends once.
func TestAnUpgradeInMidRepairLosesNothing(t *testing.T) {
	c, ctx := startAny(t)
	this, err := cluster.Chart()
	require.NoError(t, err)
	previous, err := c.PreviousChart(ctx)
	require.NoError(t, err)
	name := another(ctx, t, c)
	budget := runApp(ctx, t, c, name)
	boot := node(t, c, name).Status.NodeInfo.BootID
	by := causeDrain(ctx, t, c, name)
	id := record(await(ctx, t, c, name, "the cordon of its drain", draining)).ID

	for _, change := range []func() error{
		func() error { return c.Helm(ctx, "upgrade", previous, "--set=podAnnotations.release=before", "--wait") },
		func() error { return c.Helm(ctx, "upgrade", this, "--wait") },
		func() error {
			_, err := c.Run(ctx, "helm", "rollback", cluster.Namespace, "--namespace="+cluster.Namespace, "--wait")
			return err
		},
	} {
		led := leader(ctx, c)
		require.NotNil(t, led)
		require.NoError(t, change())
		require.Eventually(t, func() bool {
			now := leader(ctx, c)
			return now != nil && now.UID != led.UID
		}, lab.Patience, tick, "another pod leads")
		n := node(t, c, name)
		require.True(t, draining(n))
		require.Equal(t, id, record(n).ID)
		require.Equal(t, boot, n.Status.NodeInfo.BootID)
	}
	t.Cleanup(func() { require.NoError(t, c.Helm(context.WithoutCancel(ctx), "upgrade", this, "--wait")) })
	yield(ctx, t, c, budget)
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience) // the changes took minutes of the other's time
	defer cancel()
	require.Equal(t, id, awaitDrained(ctx, t, c, name, by).ID)
}

// yield lets the PodDisruptionBudget allow the eviction.
func yield(ctx context.Context, t *testing.T, c *cluster.Cluster, budget string) {
	t.Helper()
	_, err := c.Client().PolicyV1().PodDisruptionBudgets("default").Patch(ctx, budget, types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// TestAnUninstallLeavesTheClusterUsable: after it, no part of Drydock judges requests any more.
func TestAnUninstallLeavesTheClusterUsable(t *testing.T) {
	c, ctx := startAny(t)
	name := another(ctx, t, c)
	write := func(value string) error {
		_, err := c.Client().CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+remediations.AlertPrefix+`ffff":`+value+`}}}`), metav1.PatchOptions{})
		return err
	}
	require.True(t, apierrors.IsForbidden(write(`"x"`)), "the control: only Drydock writes its own keys")
	_, err := c.Run(ctx, "helm", "uninstall", cluster.Namespace, "--namespace="+cluster.Namespace, "--wait")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Install(context.WithoutCancel(ctx)))
	})
	// The API server may still have the policy in memory for a moment.
	require.Eventually(t, func() bool { return write(`"x"`) == nil }, lab.Patience, tick)
	require.NoError(t, write("null"))
	hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, hooks.Items)
	policies, err := c.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, policies.Items)
	require.NoError(t, c.AwaitStopped(ctx))
}

// TestTheOnlyReplicasNodeIsRebooted: Drydock ends together with its node, and proves the reboot
// when it is back.
func TestTheOnlyReplicasNodeIsRebooted(t *testing.T) {
	c, ctx := start(t)
	this, err := cluster.Chart()
	require.NoError(t, err)
	require.NoError(t, c.Helm(ctx, "upgrade", this, "--set=replicaCount=1", "--wait"))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		require.NoError(t, c.Helm(ctx, "upgrade", this))
		require.NoError(t, c.AwaitDrydock(ctx, 2))
	})
	require.NoError(t, c.AwaitDrydock(ctx, 1))
	name := leaderNode(ctx, t, c)
	rebooted(ctx, t, c, name)
}
