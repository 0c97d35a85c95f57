package fleet_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestTheLedgerRemembersTheGPUsOfABoundedNumberOfMachines: recorded machines stay for as long as
// they have a Node.
func TestTheLedgerRemembersTheGPUsOfABoundedNumberOfMachines(t *testing.T) {
	gpus := func(i int, count string) *corev1.Node {
		n := scene.Bare(fmt.Sprintf("gpu%05d", i))
		n.Labels[signs.GPUCountLabel], n.Status.Allocatable = count, corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
		return n
	}
	var nodes []*corev1.Node
	for i := range ledger.GPUsMost {
		nodes = append(nodes, gpus(i, "4"))
	}
	r, l := fleet.NewRoster(scene.LimitsAlone()), &ledger.Ledger{}
	r.Read(nodes)
	l.GPUs = r.SeenGPUs(l)
	require.Len(t, l.GPUs, ledger.GPUsMost)
	require.Nil(t, r.SeenGPUs(l), "nothing has grown")

	late := gpus(ledger.GPUsMost, "8")
	r.Change([]*corev1.Node{late}, nil)
	require.Nil(t, r.SeenGPUs(l), "there is no room, and nothing to write")
	r.Change([]*corev1.Node{gpus(0, "8")}, nil)
	l.GPUs = r.SeenGPUs(l)
	require.Len(t, l.GPUs, ledger.GPUsMost)
	require.Equal(t, 8, l.GPUsOf(r.Node("gpu00000")), "a machine that it remembers may have more")
	require.Zero(t, l.GPUsOf(late))

	r.Change(nil, []string{"gpu00001"})
	l.GPUs = r.SeenGPUs(l)
	require.Equal(t, 8, l.GPUsOf(late), "another machine is gone")
	require.Zero(t, l.GPUsOf(nodes[1]))

	l.GPUs = map[string]int{}
	for i := range ledger.GPUsMost - 1 {
		l.GPUs[fmt.Sprint("without a Node ", i)] = 4
	}
	r = fleet.NewRosterOf(scene.LimitsAlone(), []*corev1.Node{late})
	require.Len(t, r.SeenGPUs(l), ledger.GPUsMost, "the last room is taken, and machines without a Node stay")
}

// TestTheGPUsOfAMachineWithTwoNodesAreNotRemembered: a kubelet that registers with another Node's
// spec.providerID shows nothing about that Node's machine.
func TestTheGPUsOfAMachineWithTwoNodesAreNotRemembered(t *testing.T) {
	node := func(name, count string) *corev1.Node {
		n := scene.Bare(name)
		n.Spec.ProviderID = "civo://m1"
		n.Labels[signs.GPUCountLabel], n.Status.Allocatable = count, corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
		return n
	}
	r, l := fleet.NewRoster(scene.LimitsAlone()), &ledger.Ledger{}
	r.Read([]*corev1.Node{node("n1", "8"), node("copied", "64")})
	require.Nil(t, r.SeenGPUs(l))
	r.Change(nil, []string{"copied"})
	require.Equal(t, 8, (&ledger.Ledger{GPUs: r.SeenGPUs(l)}).GPUsOf(r.Node("n1")), "the control")
}
