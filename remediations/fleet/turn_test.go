package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
)

// TestTheOldestFaultGoesFirst: this is the order of nodes that wait, after the nodes under repair.
// Of equal nodes, the first by name comes first.
func TestTheOldestFaultGoesFirst(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC)
	named := func(name string, phase remediations.Phase) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if phase != "" {
			n.Labels = map[string]string{remediations.PhaseLabel: string(phase)}
		}
		return n
	}
	var got []string
	for _, n := range fleet.InTurn([]fleet.Turn{
		fleet.TurnOf(named("quiet-b", ""), time.Time{}, false),
		fleet.TurnOf(named("young", remediations.PhasePending), at.Add(time.Minute), true),
		fleet.TurnOf(named("quiet-a", remediations.PhaseExhausted), time.Time{}, false),
		fleet.TurnOf(named("old-b", ""), at, true),
		fleet.TurnOf(named("verifying", remediations.PhaseVerifying), at.Add(time.Hour), true),
		fleet.TurnOf(named("old-a", remediations.PhasePending), at, true),
		fleet.TurnOf(named("acting", remediations.PhaseActing), time.Time{}, false),
	}) {
		got = append(got, n.Name)
	}
	require.Equal(t, []string{"acting", "verifying", "old-a", "old-b", "young", "quiet-a", "quiet-b"}, got)
}
