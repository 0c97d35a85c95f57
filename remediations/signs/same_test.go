package signs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/signs"
)

// TestWhatADecisionCouldSeeIsADifference: every field that a decision may read counts. The caller
// compares annotations, because it knows which of them are heartbeats.
func TestWhatADecisionCouldSeeIsADifference(t *testing.T) {
	base := func() *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1", Labels: map[string]string{signs.GPUCountLabel: "2"}},
			Spec:       corev1.NodeSpec{ProviderID: "civo://a", Taints: []corev1.Taint{{Key: "k"}}, PodCIDR: "10.42.0.0/24"},
			Status: corev1.NodeStatus{
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(100, 0)}},
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("2")},
				NodeInfo:    corev1.NodeSystemInfo{BootID: "b", SystemUUID: "s"},
			},
		}
	}
	for what, change := range map[string]func(*corev1.Node){
		"another object":      func(n *corev1.Node) { n.UID = "other" },
		"another age":         func(n *corev1.Node) { n.CreationTimestamp = metav1.Unix(200, 0) },
		"its deletion":        func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} },
		"a label":             func(n *corev1.Node) { n.Labels["a"] = "b" },
		"a cordon":            func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"another machine":     func(n *corev1.Node) { n.Spec.ProviderID = "civo://b" },
		"a pod CIDR":          func(n *corev1.Node) { n.Spec.PodCIDR = "10.42.1.0/24" },
		"a taint":             func(n *corev1.Node) { n.Spec.Taints = nil },
		"another taint":       func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute },
		"a boot":              func(n *corev1.Node) { n.Status.NodeInfo.BootID = "c" },
		"another system UUID": func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = "t" },
		"readiness":           func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"a condition that was another one meanwhile": func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.Unix(200, 0) },
		"who set a condition":                        func(n *corev1.Node) { n.Status.Conditions[0].Reason = "DrydockRepair" },
		"a GPU that is gone":                         func(n *corev1.Node) { n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("1") },
		"no GPUs any more":                           func(n *corev1.Node) { delete(n.Status.Allocatable, "nvidia.com/gpu") },
	} {
		n := base()
		change(n)
		require.False(t, signs.Same(base(), n), what)
	}
	beat := base()
	beat.ResourceVersion = "2"
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(200, 0)
	beat.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	require.True(t, signs.Same(base(), beat), "a heartbeat")
}

// TestAReadingFromBeforeARestoreIsNotLater: after a restore of the API server's store, the time at
// which a condition was confirmed is earlier than in the last reading.
func TestAReadingFromBeforeARestoreIsNotLater(t *testing.T) {
	at := func(second int64) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Broken", LastHeartbeatTime: metav1.Unix(second, 0)}}}}
	}
	require.True(t, signs.NotBefore(at(100), at(100)))
	require.True(t, signs.NotBefore(at(160), at(100)))
	require.False(t, signs.NotBefore(at(100), at(160)))
}
