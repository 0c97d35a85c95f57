package remediations

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
)

// GPUCountLabel says how many GPUs the machine has. That number is told by the label alone: what the node offers may be
// fewer, which is the very fault.
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

// gpuLabels are the labels of a node for a selector: GPUCountLabel exists on every GPU node, without a value where the node
// lost it. Otherwise a GPU node that lost one label would have the shorter waits of other nodes.
type gpuLabels struct {
	k8slabels.Set
	node *corev1.Node
}

func (l gpuLabels) Has(label string) bool {
	return l.Set.Has(label) || label == GPUCountLabel && gpuMark(l.node) != ""
}

func (l gpuLabels) Lookup(label string) (string, bool) {
	return l.Get(label), l.Has(label)
}
