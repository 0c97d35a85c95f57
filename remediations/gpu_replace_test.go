package remediations_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestGPUNodeIsNeverReplaced: no policy replaces a GPU node, even after the node has lost the label
// with its number of GPUs.
func TestGPUNodeIsNeverReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*corev1.Node)
		replace bool
	}{
		"the control":                  {func(*corev1.Node) {}, true},
		"it says how many GPUs it has": {func(n *corev1.Node) { n.Labels[signs.GPUCountLabel] = "8" }, false},
		"it lost that label":           {func(n *corev1.Node) { n.Labels["nvidia.com/gpu.present"] = "true" }, false},
		"it lost all labels": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scene.Scene{Policy: scene.Policy{Plan: []string{"replace"}}, Provided: []string{"replace"}, Survey: &scene.Survey{Step: "replace", Before: `{"instance":"n1"}`}}
			s := sc.State(t)
			c.change(s.Node)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.replace, d.Verb == lifecycle.VerbIssue, d.Message)
			n := scene.Acting()
			r := ReadJournal(n).Record
			r.Step.Name = "replace"
			n.Annotations[NodeRepairKey] = r.Encode()
			c.change(n)
			require.Equal(t, c.replace, node.MayStillAct(&Config{}, n, "r1-0-1", nil, nil) == nil, "nor at the last look")
		})
	}
}
