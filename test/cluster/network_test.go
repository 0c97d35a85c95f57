package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

// TestOnlyListedClientsReachTheReceiver: the chart's NetworkPolicy keeps others away, and hinders
// neither Alertmanager, nor the API server's calls, nor the kubelet's probes.
func TestOnlyListedClientsReachTheReceiver(t *testing.T) {
	c, ctx := start(t)
	name := another(ctx, t, c)
	host := c.Hosts.Host(name)
	reaches := func(client string, port int32) bool {
		pod, err := c.Client().CoreV1().Pods("default").Get(ctx, client, metav1.GetOptions{})
		drydock := leader(ctx, c)
		return err == nil && drydock != nil && connects(ctx, host, pod, drydock.Status.PodIP, port)
	}
	const receiver, metrics, health = 9095, 8080, 8081
	for _, client := range []string{"listed", "stranger"} {
		p := pod(c, client, name, corev1.PodSpec{})
		p.Labels = map[string]string{"client": client}
		_, err := c.Client().CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, c.Client().CoreV1().Pods("default").Delete(context.WithoutCancel(ctx), client, metav1.DeleteOptions{}))
		})
		require.Eventually(t, func() bool { return reaches(client, receiver) }, lab.Patience, tick, "by default everyone does")
		require.False(t, reaches(client, health), "only the kubelet asks there")
	}

	this, err := cluster.Chart()
	require.NoError(t, err)
	require.NoError(t, c.Helm(ctx, "upgrade", this, "--wait", fmt.Sprintf(
		`--set-json=networkPolicy.receiver.from=[{"ipBlock":{"cidr":"%s/32"}},{"namespaceSelector":{},"podSelector":{"matchLabels":{"client":"listed"}}}]`, c.Hosts.Machine())))
	t.Cleanup(func() { require.NoError(t, c.Helm(context.WithoutCancel(ctx), "upgrade", this, "--wait")) })
	require.Eventually(t, func() bool { return !reaches("stranger", receiver) }, lab.Patience, tick)
	require.True(t, reaches("listed", receiver))
	require.True(t, reaches("stranger", metrics))

	before := lastRepair(node(t, c, name))
	systemctl(ctx, t, host, "kill", "--signal=STOP", hosts.KubeletUnit)
	require.Equal(t, remediations.OutcomeRecovered, awaitRepair(ctx, t, c, name, before).Outcome)
	require.False(t, reaches("stranger", receiver))
	_, err = c.Run(ctx, "helm", "test", cluster.Namespace, "--namespace="+cluster.Namespace, "--timeout=5m")
	require.NoError(t, err)
}

// connects reports whether a connection from the network of the pod, which runs on the host,
// succeeds.
func connects(ctx context.Context, h *hosts.Host, pod *corev1.Pod, address string, port int32) bool {
	if len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	tasks, err := h.Run(ctx, "ctr", "--namespace=k8s.io", "tasks", "list")
	if err != nil || id == "" {
		return false
	}
	for line := range strings.Lines(tasks) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == id {
			_, err := h.Run(ctx, "nsenter", "--net", "--target", fields[1], "timeout", "2", "bash", "-c", fmt.Sprintf("</dev/tcp/%s/%d", address, port))
			return err == nil
		}
	}
	return false
}
