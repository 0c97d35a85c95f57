package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnExhaustedNodeThatIsWellIsShownSo, with what a person may do, and it is not among the nodes
// that a breaker counts. The control: a node that is not well.
func TestAnExhaustedNodeThatIsWellIsShownSo(t *testing.T) {
	t.Parallel()
	at := func(well time.Time) (*remediations.Record, *corev1.Node) {
		r := &remediations.Record{
			V: remediations.RecordVersion, ID: "cccccc", Policy: "node-not-ready", Cause: remediations.Cause{Alert: scene.FP}, Phase: remediations.PhaseExhausted,
			Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: scene.Noon.Add(-time.Hour), Since: scene.Noon.Add(-time.Hour), WellSince: well,
		}
		return r, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "node-3", Labels: map[string]string{remediations.PhaseLabel: "Exhausted"}, Annotations: map[string]string{remediations.NodeRepairKey: r.Encode()},
			},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
	}
	r, n := at(scene.Noon.Add(-20 * time.Minute))
	require.Equal(t, "the node has been healthy since 2026-03-04T11:40:00Z; if it is fixed, run `kubectl drydock reset node-3`", RepairsOn(n)[0].Says())
	require.Equal(t, "repair cccccc is exhausted; a person must check the node; the node has been healthy since 2026-03-04T11:40:00Z", spent(r).Message)
	require.Empty(t, Ill(n))

	r, n = at(time.Time{})
	require.Equal(t, "a person must check the node; once it is fixed, run `kubectl drydock reset node-3`", RepairsOn(n)[0].Says())
	require.Equal(t, "repair cccccc is exhausted; a person must check the node", spent(r).Message)
	require.Equal(t, "Exhausted", Ill(n))
}
