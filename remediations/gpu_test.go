package remediations_test

import (
	"testing"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestExpectedGPUsComeFromTheLabelAlone(t *testing.T) {
	for label, want := range map[string]int{"1": 1, "8": 8, "1024": 1024, "0": 0, "": 0, "-1": 0, "eight": 0, "8.0": 0, "1025": 0, "99999999999999999999": 0} {
		n := scene.Bare("n1")
		n.Labels[signs.GPUCountLabel] = label
		got, ok := signs.ExpectedGPUs(n)
		require.Equal(t, want, got, "%q", label)
		require.Equal(t, want > 0, ok, "%q", label)
	}
	_, ok := signs.ExpectedGPUs(scene.Bare("n1"))
	require.False(t, ok, "no label, no GPU node")
}

func TestFleetKnowsTheGPUNodes(t *testing.T) {
	gpu, young, sick := scene.Bare("gpu1"), scene.Bare("gpu2"), scene.Unready(scene.Bare("gpu3"))
	gpu.Labels[signs.GPUCountLabel], young.Labels[signs.GPUCountLabel], sick.Labels[signs.GPUCountLabel] = "8", "4", "2"
	young.CreationTimestamp.Time = scene.Noon
	f := scene.FleetOf(scene.LimitsAlone(), []*corev1.Node{gpu, young, sick, scene.Bare("n1")}, nil, scene.Noon)
	require.Equal(t, map[string]int{"gpu1": 8, "gpu2": 4, "gpu3": 2}, f.ExpectedGPUs)
}

// TestGPUNodesMayRightlyOfferNoGPU: some GPU nodes correctly offer no GPU resource, for example
// those that pass their GPUs to virtual machines. No alert about missing GPUs may fire for them.
func TestGPUNodesMayRightlyOfferNoGPU(t *testing.T) {
	offers := func(name string, what corev1.ResourceList) *corev1.Node {
		n := scene.Bare(name)
		n.Labels[signs.GPUCountLabel], n.Status.Allocatable = "8", what
		return n
	}
	none := resource.MustParse("0")
	passed := offers("passthrough", corev1.ResourceList{"nvidia.com/gpu": none})
	passed.Labels["nvidia.com/gpu.workload.config"] = "vm-passthrough"
	f := scene.FleetOf(scene.LimitsAlone(), []*corev1.Node{
		offers("broken", corev1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": none}),
		offers("mig", corev1.ResourceList{"nvidia.com/mig-1g.5gb": none}), offers("shared", corev1.ResourceList{"nvidia.com/gpu.shared": none}),
		offers("dra", corev1.ResourceList{"cpu": resource.MustParse("8")}), passed,
	}, nil, scene.Noon)
	require.Equal(t, map[string]int{"broken": 8, "mig": 8, "shared": 8}, f.ExpectedGPUs)
}

// TestAMachineThatLostAGPUIsStillExpectedToHaveIt: after a reboot, the label of a machine that lost
// a GPU has the lower number. Without the earlier number in the repair's record the loss would be
// forgotten.
func TestAMachineThatLostAGPUIsStillExpectedToHaveIt(t *testing.T) {
	n := scene.InFlight(scene.Bare("gpu1"), "reboot")
	n.Labels[signs.GPUCountLabel] = "7"
	n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("7")}
	expected := func() int {
		return scene.FleetOf(scene.LimitsAlone(), []*corev1.Node{n}, nil, scene.Noon).ExpectedGPUs["gpu1"]
	}
	require.Equal(t, 7, expected(), "the control: the record does not know how many it had")
	r := ReadJournal(n).Record
	r.Intent.GPUs, r.Intent.ProviderID = 8, n.Spec.ProviderID
	n.Annotations[NodeRepairKey] = r.Encode()
	require.Equal(t, 8, expected())
	n.Spec.ProviderID = "another machine"
	require.Equal(t, 7, expected(), "another machine under the same name")
}

// TestNodeThatLostItsGPULabelIsStillAGPUNode: the policies for GPU nodes, with longer waits for a
// reboot, select the node by its other GPU labels and resources.
func TestNodeThatLostItsGPULabelIsStillAGPUNode(t *testing.T) {
	policy := func(name, selector string) *Policy {
		s, err := k8slabels.Parse(selector)
		require.NoError(t, err)
		return &Policy{Name: name, Mode: ModeEnforce, Labels: []string{"node"}, Match: matchers(t, `alertname="A"`), NodeSelector: s}
	}
	c := &Config{Policies: []*Policy{policy("eight", signs.GPUCountLabel+"=8"), policy("standard", "!"+signs.GPUCountLabel), policy("gpu", signs.GPUCountLabel)}}
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		policy string
	}{
		"the control":            {func(*corev1.Node) {}, "standard"},
		"another vendor's label": {func(n *corev1.Node) { n.Labels["amd.com/gpu.count"] = "8" }, "standard"},
		"the label":              {func(n *corev1.Node) { n.Labels[signs.GPUCountLabel] = "4" }, "gpu"},
		"the label says none":    {func(n *corev1.Node) { n.Labels[signs.GPUCountLabel] = "0" }, "gpu"},
		"a value that is chosen": {func(n *corev1.Node) { n.Labels[signs.GPUCountLabel] = "8" }, "eight"},
		"it lost that label":     {func(n *corev1.Node) { n.Labels["nvidia.com/gpu.present"] = "true" }, "gpu"},
		"it lost all labels": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("8")}
		}, "gpu"},
		"and its GPUs, too": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
		}, "gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			tc.change(n)
			r, why := routing.Of(c, map[string]string{"alertname": "A", "node": "n1"}, func(string) *corev1.Node { return n })
			require.Equal(t, MisrouteNone, why)
			require.Equal(t, tc.policy, r.Policy.Name)
		})
	}
}

func matchers(t testing.TB, text ...string) labels.Matchers {
	t.Helper()
	var ms labels.Matchers
	for _, s := range text {
		m, err := labels.ParseMatcher(s)
		require.NoError(t, err)
		ms = append(ms, m)
	}
	return ms
}
