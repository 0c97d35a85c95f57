package remediations

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	gpuPrefix     = "nvidia.com/"
	gpuResource   = corev1.ResourceName("nvidia.com/gpu")
	migPrefix     = "nvidia.com/mig-"
	sharedSuffix  = ".shared"
	migStrategy   = "nvidia.com/mig.strategy"
	gpuReplicas   = "nvidia.com/gpu.replicas"
	gpuSharing    = "nvidia.com/gpu.sharing-strategy"
	gpuProduct    = "nvidia.com/gpu.product"
	sharedProduct = "-SHARED"
)

// gpusSay compares what the node offers with what its label promises. GPUs that are partitioned or shared are offered under
// other names, or more often than they exist, so their number says nothing of the machine.
func gpusSay(n *corev1.Node) Testimony {
	expected, ok := ExpectedGPUs(n)
	if !ok {
		return Testimony{Answer: Unknown, Saw: "the label " + GPUCountLabel + " does not say how many GPUs the node has"}
	}
	if len(n.Status.Allocatable) == 0 {
		return Testimony{Answer: Unknown, Saw: "the Node does not say what it offers"}
	}
	if why := sharedGPUs(n); why != "" {
		return Testimony{Answer: Unknown, Saw: "the GPUs of the node cannot be counted: " + why}
	}
	offered := n.Status.Allocatable[gpuResource]
	t := Testimony{Answer: Well, Saw: fmt.Sprintf("the node offers %s of %d GPUs", offered.String(), expected)}
	if offered.Value() < int64(expected) {
		t.Answer = Ill
	}
	return t
}

// sharedGPUs says how the node's GPUs are partitioned or shared; empty: they are not.
func sharedGPUs(n *corev1.Node) string {
	if n.Labels[migStrategy] == "mixed" {
		return "the label " + migStrategy + " is mixed"
	}
	if v := n.Labels[gpuSharing]; v != "" && v != "none" {
		return fmt.Sprintf("the label %s is %s", gpuSharing, clip(v, 63))
	}
	if v, err := strconv.Atoi(n.Labels[gpuReplicas]); err == nil && v > 1 {
		return fmt.Sprintf("the label %s is %d", gpuReplicas, v)
	}
	if strings.HasSuffix(n.Labels[gpuProduct], sharedProduct) {
		return "the label " + gpuProduct + " ends with " + sharedProduct
	}
	for name := range n.Status.Allocatable {
		if r := string(name); strings.HasPrefix(r, migPrefix) || strings.HasPrefix(r, gpuPrefix) && strings.HasSuffix(r, sharedSuffix) {
			return "the node offers " + clip(r, 100)
		}
	}
	return ""
}

// GPUResource says that the resource is about GPUs.
func GPUResource(name string) bool { return strings.HasPrefix(name, gpuPrefix) }
