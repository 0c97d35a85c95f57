package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "drydock.dev/drydock/remediations"
)

// TestTheOldestFaultGoesFirst among those that wait, behind what is under repair; a name decides between equals.
func TestTheOldestFaultGoesFirst(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC)
	named := func(name string, phase Phase) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if phase != "" {
			n.Labels = map[string]string{PhaseLabel: string(phase)}
		}
		return n
	}
	var got []string
	for _, n := range InTurn([]Turn{
		TurnOf(named("quiet-b", ""), time.Time{}, false),
		TurnOf(named("young", Pending), at.Add(time.Minute), true),
		TurnOf(named("quiet-a", Exhausted), time.Time{}, false),
		TurnOf(named("old-b", ""), at, true),
		TurnOf(named("verifying", Verifying), at.Add(time.Hour), true),
		TurnOf(named("old-a", Pending), at, true),
		TurnOf(named("acting", Acting), time.Time{}, false),
	}) {
		got = append(got, n.Name)
	}
	require.Equal(t, []string{"acting", "verifying", "old-a", "old-b", "young", "quiet-a", "quiet-b"}, got)
}
