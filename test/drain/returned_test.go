package drain

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations/kube"
)

// A workload that is pinned to its node and tolerates every taint comes back to the node after each
// eviction.
func TestAPodThatComesBackToTheCordonedNodeIsEvictedOnce(t *testing.T) {
	p := newPlace(t)
	p.replicas("pinned", 2, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	p.replicas("guarded", 1)
	p.budget("guarded", "guarded", 1, 1) // keeps the drain running until the others have come back
	s := p.start(kube.DrainOptions{})
	s.says("1 of 3 pods are left; " + p.ns + "/guarded-")

	p.bind("pinned", 2, p.node) // as a scheduler does
	s.says("1 of 3 pods are left; not evicted, because they came after the drain began and tolerate the cordon: " + p.ns + "/pinned-")
	p.replicas("late", 1) // the control: bound before the scheduler saw the cordon
	s.says("1 of 4 pods are left; not evicted")
	require.NoError(t, p.admin.PolicyV1().PodDisruptionBudgets(p.ns).Delete(t.Context(), "guarded", metav1.DeleteOptions{}))
	report, err := s.ends()
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 4, Evicted: 4, Returned: report.Returned}, report)
	require.Len(t, strings.Split(report.Returned, ", "), 2)
	require.Equal(t, map[string]int{"pinned": 2, "late": 1}, p.evictedOf("pinned", "late"))
	require.Len(t, p.on(), 2)

	// A later call finds the pods there at its beginning and evicts them, as kubectl would.
	report, err = p.drain(kube.DrainOptions{})
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 2, Evicted: 2}, report)
	require.Empty(t, p.on())
}

// TestADaemonSetWhosePodsFailAgainAndAgainKeepsNoDrainBusy: under disk pressure the kubelet ends
// each pod of the DaemonSet, and the DaemonSet creates the next one. The control is another pod
// that has finished.
func TestADaemonSetWhosePodsFailAgainAndAgainKeepsNoDrainBusy(t *testing.T) {
	p := newPlace(t)
	p.daemonSet("agent")
	p.run("job")
	p.finish("job")
	failed := make(chan string, 100)
	p.failAll("agent", failed)
	<-failed
	s := p.start(kube.DrainOptions{})
	report, err := s.ends()
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 1, Evicted: 1}, report)
	require.Empty(t, p.evictedOf("agent"))
}

// failAll acts as a scheduler, and as a kubelet under disk pressure, for each pod of the app until
// the test ends. It sends the name of each pod.
func (p *place) failAll(app string, failed chan<- string) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		pods := p.admin.CoreV1().Pods(p.ns)
		for ctx.Err() == nil {
			list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
			if err != nil {
				continue // try again, unless the test has ended
			}
			for _, pod := range list.Items {
				switch {
				case pod.Spec.NodeName == "":
					_ = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: p.node}}, metav1.CreateOptions{})
				case pod.Status.Phase == corev1.PodRunning:
					if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"status":{"phase":"Failed","reason":"Evicted"}}`), metav1.PatchOptions{}, "status"); err == nil {
						failed <- pod.Name
					}
				}
			}
		}
	})
	p.t.Cleanup(func() { cancel(); done.Wait() })
}

// evictedOf counts the requested evictions by the app of the pod.
func (p *place) evictedOf(apps ...string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for _, pod := range p.evictions {
		for _, app := range apps {
			if strings.HasPrefix(pod, app+"-") {
				n[app]++
			}
		}
	}
	return n
}
