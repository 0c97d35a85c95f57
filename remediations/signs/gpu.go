package signs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/text"
)

// GPUCountLabel has the number of GPUs that the machine has now. The node may offer fewer to pods.
// If the machine loses a GPU, this number also falls, so the record of a repair keeps the number
// from before the fault.
const GPUCountLabel = "nvidia.com/gpu.count"

// More GPUs than any machine has. A label with a larger number is ignored.
const maxGPUs = 1024

// ExpectedGPUs returns the number in the label GPUCountLabel. If ok is false, the number is missing
// or not from 1 to maxGPUs, which is missing data, and not a fault.
func ExpectedGPUs(n *corev1.Node) (int, bool) {
	label, ok := n.Labels[GPUCountLabel]
	if !ok {
		return 0, false // most nodes have no label; building an error for each of them in every pass would cost time
	}
	count, err := strconv.Atoi(label)
	if err != nil || count <= 0 || count > maxGPUs {
		return 0, false
	}
	return count, true
}

// GPUMark returns which label or resource of NVIDIA shows that the node has or had GPUs, as a
// phrase for messages, or "". A node that lost its label GPUCountLabel still has other labels of
// the GPU operator, or offers a resource, possibly with the number 0.
func GPUMark(n *corev1.Node) string {
	for name := range n.Labels {
		if GPUResource(name) {
			return "it has the label " + text.Line(name, 100)
		}
	}
	for name := range n.Status.Allocatable {
		if GPUResource(string(name)) {
			return "it offers " + text.Line(string(name), 100)
		}
	}
	return ""
}

// LabelsOf returns the labels of a node for a selector. If the node lost GPUCountLabel, but
// something else shows that it has GPUs, the label is there with an empty value. Otherwise a policy
// for other nodes would select it, and such a policy waits less.
func LabelsOf(n *corev1.Node) k8slabels.Labels { return gpuLabels{k8slabels.Set(n.Labels), n} }

type gpuLabels struct {
	k8slabels.Set
	node *corev1.Node
}

func (l gpuLabels) Has(label string) bool {
	return l.Set.Has(label) || label == GPUCountLabel && GPUMark(l.node) != ""
}

func (l gpuLabels) Lookup(label string) (string, bool) {
	return l.Get(label), l.Has(label)
}

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
	migProduct    = "-MIG-"
	// workloadConfig and deviceplugin are labels of the GPU Operator. migState is a label of its
	// MIG manager.
	workloadConfig = "nvidia.com/gpu.workload.config"
	deviceplugin   = "nvidia.com/gpu.deploy.device-plugin"
	migState       = "nvidia.com/mig.config.state"
)

// gpusSay compares the number of GPUs that the node offers with its label. Partitioned or shared
// GPUs have other names, or are offered several times each. Then the numbers cannot be compared,
// and the answer is Unknown.
func gpusSay(n *corev1.Node) Testimony {
	expected, ok := ExpectedGPUs(n)
	if !ok {
		return Testimony{Answer: Unknown, Reason: NonGPUNode, Saw: "the label " + GPUCountLabel + " does not say how many GPUs the node has"}
	}
	if len(n.Status.Allocatable) == 0 {
		return Testimony{Answer: Unknown, Reason: GPUCountUnknown, Saw: "the Node reports no allocatable resources"}
	}
	if why := cmp.Or(elsewhere(n), sharedGPUs(n)); why != "" {
		return Testimony{Answer: Unknown, Reason: GPUCountUnknown, Saw: "the GPUs of the node cannot be counted: " + why}
	}
	offered := n.Status.Allocatable[gpuResource]
	t := Testimony{Answer: Well, Reason: GPUCountMatch, Saw: fmt.Sprintf("the node offers %s of %d GPUs", offered.String(), expected)}
	switch {
	case offered.Value() >= int64(expected):
	case offered.IsZero():
		t.Answer, t.Reason = Ill, NoAllocatableGPU
	default:
		t.Answer, t.Reason = Ill, GPUCountMismatch
	}
	return t
}

// PromisedGPUs returns how many GPUs the node should offer under all names that the alert about
// GPUs counts: nvidia.com/gpu, shared GPUs and MIG devices. ok is false if the number is unknown.
func PromisedGPUs(n *corev1.Node) (int, bool) {
	count, ok := ExpectedGPUs(n)
	return count, ok && (len(n.Status.Allocatable) == 0 || elsewhere(n) == "")
}

// WholeGPUs returns how many GPUs the machine has according to the label. ok is false if the number
// is unknown or may fall without a fault: the GPUs are partitioned, shared or offered under other
// names. With MIG's strategy "single" the label counts partitions. The number that the node offers
// is not used: time slices multiply it, and the label that shows them may be set later.
func WholeGPUs(n *corev1.Node) (int, bool) {
	count, ok := ExpectedGPUs(n)
	if !ok || strings.Contains(n.Labels[gpuProduct], migProduct) || sharedGPUs(n) != "" || elsewhere(n) != "" {
		return 0, false
	}
	return count, true
}

// LostGPUs compares the number in the label now (count) with had, the number before the fault. lost
// is false if the two cannot be compared.
func LostGPUs(n *corev1.Node, had int) (count int, lost bool) {
	count, ok := ExpectedGPUs(n)
	return count, ok && count < had && sharedGPUs(n) == "" && elsewhere(n) == ""
}

// Why the node correctly does not offer nvidia.com/gpu, for example for virtual machines, or "". A
// kubelet keeps a resource that it once offered, with the number 0, so a node without the resource
// has never offered it.
func elsewhere(n *corev1.Node) string {
	switch v := n.Labels[workloadConfig]; v {
	case "", "container":
	default:
		return fmt.Sprintf("the label %s is %s, so they are for virtual machines", workloadConfig, text.Line(v, 63))
	}
	if n.Labels[deviceplugin] == "false" {
		return "the label " + deviceplugin + " is false, so no device plugin offers them"
	}
	switch v := n.Labels[migState]; v {
	case "pending", "rebooting":
		return fmt.Sprintf("the label %s is %s, so the MIG manager is changing them", migState, v)
	}
	for name := range n.Status.Allocatable {
		if r := string(name); name == gpuResource || strings.HasPrefix(r, migPrefix) || r == string(gpuResource)+sharedSuffix {
			return ""
		}
	}
	return "the node has never offered " + string(gpuResource) + "; DRA or a device plugin for virtual machines may offer them under other names"
}

// How the node's GPUs are partitioned or shared, or "".
func sharedGPUs(n *corev1.Node) string {
	if n.Labels[migStrategy] == "mixed" {
		return "the label " + migStrategy + " is mixed"
	}
	if v := n.Labels[gpuSharing]; v != "" && v != "none" {
		return fmt.Sprintf("the label %s is %s", gpuSharing, text.Line(v, 63))
	}
	if v, err := strconv.Atoi(n.Labels[gpuReplicas]); err == nil && v > 1 {
		return fmt.Sprintf("the label %s is %d", gpuReplicas, v)
	}
	if strings.HasSuffix(n.Labels[gpuProduct], sharedProduct) {
		return "the label " + gpuProduct + " ends with " + sharedProduct
	}
	for name := range n.Status.Allocatable {
		if r := string(name); strings.HasPrefix(r, migPrefix) || strings.HasPrefix(r, gpuPrefix) && strings.HasSuffix(r, sharedSuffix) {
			return "the node offers " + text.Line(r, 100)
		}
	}
	return ""
}

// GPUResource reports whether the name of a resource or a label belongs to NVIDIA's GPUs.
func GPUResource(name string) bool { return strings.HasPrefix(name, gpuPrefix) }
