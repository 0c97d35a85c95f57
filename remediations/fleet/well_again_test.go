package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnExhaustedNodeCountsAsUnhealthyUntilItIsWell: the record has the time since when it is well.
// A node that is not Ready, or has fewer GPUs than before its fault, still counts.
func TestAnExhaustedNodeCountsAsUnhealthyUntilItIsWell(t *testing.T) {
	for name, c := range map[string]struct {
		well      time.Time
		change    func(*corev1.Node)
		unhealthy int
	}{
		"nobody found it well": {unhealthy: 1},
		"well":                 {well: scene.Noon.Add(-time.Hour)},
		"well, then not Ready": {well: scene.Noon.Add(-time.Hour), change: func(n *corev1.Node) { scene.Unready(n) }, unhealthy: 1},
		"well, with fewer GPUs": {well: scene.Noon.Add(-time.Hour), unhealthy: 1, change: func(n *corev1.Node) {
			n.Labels[signs.GPUCountLabel] = "7"
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("7")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := scene.LimitsAlone()
			nodes := scene.Herd(10, 0, "a")
			n := nodes[0]
			n.Spec.ProviderID = "civo://n1"
			r := Record{
				V: RecordVersion, ID: "abc234", Policy: "node-not-ready", Cause: Cause{Alert: scene.FP}, Phase: PhaseExhausted, Step: StepRef{Name: "reboot", Attempt: 1},
				Done: Attempts{{Name: "reboot", Number: 1}}, Began: scene.Noon.Add(-3 * time.Hour), Since: scene.Noon.Add(-2 * time.Hour), WellSince: c.well,
				Intent: &Intent{ID: "abc234-0-1", At: scene.Noon.Add(-3 * time.Hour), ProviderID: "civo://n1", GPUs: 8, Outcome: CallAccepted},
			}
			n.Labels[PhaseLabel], n.Labels[signs.GPUCountLabel] = string(PhaseExhausted), "8"
			n.Annotations = map[string]string{NodeRepairKey: r.Encode()}
			if c.change != nil {
				c.change(n)
			}
			require.Equal(t, c.unhealthy, scene.FleetOf(conf, nodes, nil, scene.Noon).Unhealthy())
		})
	}
}
