package ledger_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

func gpuNode(name string, count int) *corev1.Node {
	n := scene.Bare(name)
	n.Labels[signs.GPUCountLabel] = strconv.Itoa(count)
	n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(count), resource.DecimalSI)}
	return n
}

// TestTheNumberOfGPUsBelongsToTheMachine: the key is the providerID, or the UID of a Node without a
// providerID.
func TestTheNumberOfGPUsBelongsToTheMachine(t *testing.T) {
	n := gpuNode("n1", 7)
	l := &ledger.Ledger{GPUs: map[string]int{ledger.GPUMachine(n): 8}}
	require.Equal(t, 8, l.GPUsOf(n))
	again := n.DeepCopy()
	again.Name, again.UID = "n2", "another"
	require.Equal(t, 8, l.GPUsOf(again), "the same machine registered again")
	other := n.DeepCopy()
	other.Spec.ProviderID = "civo://other"
	require.Zero(t, l.GPUsOf(other), "another machine under the same name")

	bare := gpuNode("n3", 7)
	bare.Spec.ProviderID = ""
	l.GPUs[ledger.GPUMachine(bare)] = 8
	require.Equal(t, 8, l.GPUsOf(bare))
	bare.UID = types.UID("made again")
	require.Zero(t, l.GPUsOf(bare))
	require.Zero(t, (*ledger.Ledger)(nil).GPUsOf(n), "no ledger")
}

// TestANumberOfGPUsThatCannotBeComparedIsNotUsed: the number falls without a fault if GPUs are
// partitioned, shared or offered under other names.
func TestANumberOfGPUsThatCannotBeComparedIsNotUsed(t *testing.T) {
	n := gpuNode("n1", 7)
	l := &ledger.Ledger{GPUs: map[string]int{ledger.GPUMachine(n): 8}}
	require.Equal(t, 8, l.GPUsOf(n), "the control")
	for label, value := range map[string]string{
		"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.sharing-strategy": "time-slicing",
		"nvidia.com/gpu.workload.config": "vm-passthrough", "nvidia.com/gpu.deploy.device-plugin": "false", "nvidia.com/mig.config.state": "pending",
		signs.GPUCountLabel: "none",
	} {
		changed := n.DeepCopy()
		changed.Labels[label] = value
		require.Zero(t, l.GPUsOf(changed), label)
	}
	never := n.DeepCopy()
	never.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8")}
	require.Zero(t, l.GPUsOf(never), "it has never offered a GPU")
}

// TestOnlyAResetLowersTheNumberOfGPUs: the number stays when old repairs are forgotten.
func TestOnlyAResetLowersTheNumberOfGPUs(t *testing.T) {
	n, other := gpuNode("n1", 7), gpuNode("n2", 7)
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}, GPUs: map[string]int{ledger.GPUMachine(n): 8, ledger.GPUMachine(other): 8}}
	l.Prune(&Config{}, scene.Noon)
	require.Equal(t, 8, l.GPUsOf(n))
	before := l.Clone()
	l.Forget(n)
	require.Zero(t, l.GPUsOf(n))
	require.Equal(t, 8, l.GPUsOf(other))
	require.Equal(t, 8, before.GPUsOf(n), "what was not saved is not remembered")
}

// TestALedgerWithoutGPUsIsRead: an earlier version wrote such a ledger. If no machine has GPUs, a
// new ledger has no such key either.
func TestALedgerWithoutGPUsIsRead(t *testing.T) {
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	old := l.Encode()
	require.NotContains(t, old, ledger.KeyGPUs)
	read, err := ledger.Decode(old)
	require.NoError(t, err)
	require.Empty(t, read.GPUs)

	l.GPUs = map[string]int{"machine": 8}
	data := l.Encode()
	read, err = ledger.Decode(data)
	require.NoError(t, err)
	require.Equal(t, l.GPUs, read.GPUs)
	delete(data, ledger.KeyGPUs)
	require.Equal(t, old, data, "all of it is in a key of its own, which an earlier version passes over")
}

// TestSizeOfTheGPUsThatTheDocumentationPromises compares the size with
// docs/reference/performance.md, for any length of the machine's name.
func TestSizeOfTheGPUsThatTheDocumentationPromises(t *testing.T) {
	l := &ledger.Ledger{GPUs: map[string]int{}}
	n := gpuNode("n1", 8)
	for i := range ledger.GPUsMost {
		n.Spec.ProviderID = "azure:///subscriptions/" + strings.Repeat("a", 150) + strconv.Itoa(i)
		l.GPUs[ledger.GPUMachine(n)] = 8
	}
	require.Len(t, l.GPUs, ledger.GPUsMost)
	size := bytesOf(l.Encode()) - bytesOf((&ledger.Ledger{}).Encode())
	require.InDelta(t, 17, size/ledger.GPUsMost, 1)
	require.LessOrEqual(t, size, maxConfigMap/6, "there is room for repairs")
}
