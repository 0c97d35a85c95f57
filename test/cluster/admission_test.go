package main

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
)

// TestAnUncordonInMidRepairIsDeniedAllTheTime: the uncordon is also denied while Drydock's
// certificate is replaced, and while all of its pods are killed and start again. Other changes of
// the node are never denied.
func TestAnUncordonInMidRepairIsDeniedAllTheTime(t *testing.T) {
	c, ctx := startAny(t)
	name := another(ctx, t, c)
	budget := runApp(ctx, t, c, name)
	by := causeDrain(ctx, t, c, name)
	await(ctx, t, c, name, "the cordon of its drain", draining)

	patch := func(ctx context.Context, body string) error {
		_, err := c.Client().CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	denied := func(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }
	load, end := context.WithCancel(ctx)
	defer end()
	var users sync.WaitGroup
	var uncordons, labels int
	var passed, refused []error
	users.Go(func() {
		for ; load.Err() == nil; uncordons++ {
			if err := patch(load, `{"spec":{"unschedulable":false}}`); load.Err() == nil && !denied(err) {
				passed = append(passed, err)
			}
		}
	})
	users.Go(func() {
		for ; load.Err() == nil; labels++ {
			if err := patch(load, `{"metadata":{"labels":{"example.com/tried":"`+string(rune('a'+labels%26))+`"}}}`); load.Err() == nil && err != nil {
				refused = append(refused, err)
			}
		}
	})

	authority := func() []byte {
		hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		if err != nil || len(hooks.Items) != 1 {
			return nil
		}
		return hooks.Items[0].Webhooks[0].ClientConfig.CABundle
	}
	old := authority()
	require.NotEmpty(t, old)
	_, err := c.Client().CoreV1().Secrets(cluster.Namespace).Patch(ctx, "drydock-webhook", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now := authority()
		return len(now) > 0 && !bytes.Equal(now, old)
	}, lab.Patience, tick, "another certificate")

	killed := map[types.UID]bool{}
	for _, p := range drydocks(ctx, t, c) {
		killed[p.UID] = true
		require.NoError(t, c.Client().CoreV1().Pods(cluster.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	}
	require.NotEmpty(t, killed)
	require.Eventually(t, func() bool {
		started := 0
		for _, p := range drydocks(ctx, t, c) {
			if !killed[p.UID] && !ready(&p).IsZero() {
				started++
			}
		}
		return started == 2
	}, lab.Patience, tick, "two other pods of Drydock are Ready")

	end()
	users.Wait()
	t.Logf("%d tries to uncordon, %d other changes", uncordons, labels)
	require.Empty(t, passed, "none was let through, or ended otherwise")
	require.Empty(t, refused)
	require.Greater(t, uncordons, 20)
	require.True(t, draining(node(t, c, name)))
	yield(ctx, t, c, budget)
	awaitDrained(ctx, t, c, name, by)
}

func drydocks(ctx context.Context, t *testing.T, c *cluster.Cluster) []corev1.Pod {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods(cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=drydock"})
	require.NoError(t, err)
	return pods.Items
}
