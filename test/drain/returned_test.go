package drain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/kube"
)

// A workload that is pinned to its node and tolerates every taint comes back there after each
// eviction.
func TestAPodThatComesBackToTheCordonedNodeIsEvictedOnce(t *testing.T) {
	p := newPlace(t)
	p.replicas("pinned", 2, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	p.replicas("guarded", 1)
	p.budget("guarded", "guarded", 1, 1) // keeps the drain going until the others have come back
	s := p.start(kube.DrainOptions{})
	s.says("1 of 3 pods are left; " + p.ns + "/guarded-")

	p.bind("pinned", 2, p.node) // what a scheduler does
	s.says("1 of 3 pods are left; not evicted, because they came after the drain began and tolerate the cordon: " + p.ns + "/pinned-")
	p.replicas("late", 1) // control: bound before the scheduler saw the cordon
	s.says("1 of 4 pods are left; not evicted")
	require.NoError(t, p.admin.PolicyV1().PodDisruptionBudgets(p.ns).Delete(t.Context(), "guarded", metav1.DeleteOptions{}))
	report, err := s.ends()
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 4, Evicted: 4, Returned: report.Returned}, report)
	require.Len(t, strings.Split(report.Returned, ", "), 2)
	require.Equal(t, map[string]int{"pinned": 2, "late": 1}, p.evictedOf("pinned", "late"))
	require.Len(t, p.on(), 2)

	// Another call finds them there when it begins, as kubectl would.
	report, err = p.drain(kube.DrainOptions{})
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 2, Evicted: 2}, report)
	require.Empty(t, p.on())
}

// evictedOf counts the evictions that were asked for, by the app of the pod.
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
