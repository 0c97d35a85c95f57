package remediations

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// GPUCountLabel says how many GPUs the machine has. Whether a node is a GPU node is told by it alone: what the node offers
// may be none, which is the very fault.
const GPUCountLabel = "nvidia.com/gpu.count"

// maxGPUs is more than any machine has. A label that says more says nothing.
const maxGPUs = 1024

// ExpectedGPUs is what the label says; false: there is no label, it says none, or it cannot be read, which is no data and
// not a fault.
func ExpectedGPUs(n *corev1.Node) (int, bool) {
	label, ok := n.Labels[GPUCountLabel]
	if !ok {
		return 0, false // as most nodes; the error that says so would be made for each in every pass
	}
	count, err := strconv.Atoi(label)
	if err != nil || count <= 0 || count > maxGPUs {
		return 0, false
	}
	return count, true
}

// gpuMark is what shows that the node has GPUs, or had them; empty: nothing. A node that lost its label GPUCountLabel still
// has others of the GPU operator, or offers a resource of that vendor, if only none of it.
func gpuMark(n *corev1.Node) string {
	for name := range n.Labels {
		if GPUResource(name) {
			return "it has the label " + clip(name, 100)
		}
	}
	for name := range n.Status.Allocatable {
		if GPUResource(string(name)) {
			return "it offers " + clip(string(name), 100)
		}
	}
	return ""
}
