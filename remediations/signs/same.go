package signs

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Same reports whether two versions of a Node are equal in everything that the cache keeps, apart
// from annotations and heartbeats.
func Same(a, b *corev1.Node) bool {
	return a.UID == b.UID && a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && maps.Equal(a.Labels, b.Labels) &&
		a.Spec.Unschedulable == b.Spec.Unschedulable && a.Spec.ProviderID == b.Spec.ProviderID && a.Spec.PodCIDR == b.Spec.PodCIDR &&
		slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, sameTaint) &&
		a.Status.NodeInfo.BootID == b.Status.NodeInfo.BootID && a.Status.NodeInfo.SystemUUID == b.Status.NodeInfo.SystemUUID &&
		slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, sameCondition) && maps.EqualFunc(Offered(a), Offered(b), sameQuantity)
}

// NotBefore reports whether no condition's heartbeat is older than in the earlier version. After a
// restore of the API server's store, heartbeats go back, and a condition may then be too old to
// count.
func NotBefore(n, earlier *corev1.Node) bool {
	for i, c := range n.Status.Conditions {
		if i < len(earlier.Status.Conditions) && c.LastHeartbeatTime.Before(&earlier.Status.Conditions[i].LastHeartbeatTime) {
			return false
		}
	}
	return true
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.LastTransitionTime.Equal(&b.LastTransitionTime) && a.Reason == b.Reason && a.Message == b.Message
}

func sameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// Offered returns the GPU resources and the CPUs that a GPU node offers, or nil without GPUs. The
// CPUs show whether the node reports its resources at all.
func Offered(n *corev1.Node) corev1.ResourceList {
	_, gpus := n.Labels[GPUCountLabel]
	var out corev1.ResourceList
	for name, quantity := range n.Status.Allocatable {
		if name == corev1.ResourceCPU || GPUResource(string(name)) {
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[name] = quantity
			gpus = gpus || name != corev1.ResourceCPU
		}
	}
	if !gpus {
		return nil
	}
	return out
}
