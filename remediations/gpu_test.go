package remediations

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestGPUNodeIsToldByItsLabelAlone(t *testing.T) {
	for label, want := range map[string]int{"1": 1, "8": 8, "1024": 1024, "0": 0, "": 0, "-1": 0, "eight": 0, "8.0": 0, "1025": 0, "99999999999999999999": 0} {
		n := bare("n1")
		n.Labels[GPUCountLabel] = label
		got, ok := ExpectedGPUs(n)
		require.Equal(t, want, got, "%q", label)
		require.Equal(t, want > 0, ok, "%q", label)
	}
	_, ok := ExpectedGPUs(bare("n1"))
	require.False(t, ok, "no label, no GPU node")
}

func TestFleetKnowsTheGPUNodes(t *testing.T) {
	gpu, young, sick := bare("gpu1"), bare("gpu2"), unready(bare("gpu3"))
	gpu.Labels[GPUCountLabel], young.Labels[GPUCountLabel], sick.Labels[GPUCountLabel] = "8", "4", "2"
	young.CreationTimestamp.Time = noon
	f := fleetOf(limits(), []*corev1.Node{gpu, young, sick, bare("n1")}, nil, noon)
	require.Equal(t, map[string]int{"gpu1": 8, "gpu2": 4, "gpu3": 2}, f.ExpectedGPUs)
}
