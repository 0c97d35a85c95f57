package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab/cluster"
)

// TestTheNodeOfTheOnlyAlertmanagerIsRebooted, once Alertmanager runs on another node and has the
// alert there. Before that no answer says that the alert fires, and no repair begins.
func TestTheNodeOfTheOnlyAlertmanagerIsRebooted(t *testing.T) {
	c, ctx := start(t)
	name := another(ctx, t, c)
	restore, err := c.AlertmanagerInPod(ctx, name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, restore(context.WithoutCancel(ctx))) })
	require.Equal(t, name, alertmanager(ctx, t, c).Spec.NodeName)

	rebooted(ctx, t, c, name)
	pod := alertmanager(ctx, t, c)
	require.NotEqual(t, name, pod.Spec.NodeName)
	require.False(t, ready(pod).IsZero())
	require.Greater(t, ended(node(t, c, name))[0].Began, ready(pod))
}

// alertmanager returns the pod that nothing deletes.
func alertmanager(ctx context.Context, t *testing.T, c *cluster.Cluster) *corev1.Pod {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods(cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + cluster.AlertmanagerPod})
	require.NoError(t, err)
	var alive []corev1.Pod
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			alive = append(alive, p)
		}
	}
	require.Len(t, alive, 1)
	return &alive[0]
}

// ready returns since when the pod is Ready. Zero: it is not.
func ready(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
