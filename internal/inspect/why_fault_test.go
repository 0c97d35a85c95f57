package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
	"drydock.dev/drydock/rules"
)

// TestAnOverdueAlertSaysWhereToLook: Drydock waits for an alert that Alertmanager lacks. While the
// rule's wait lasts, that is normal. Later a person must look at the rule, and waiting does not
// help.
func TestAnOverdueAlertSaysWhereToLook(t *testing.T) {
	t.Parallel()
	rule := rules.Rule{Alert: "NodeNotReady", Waits: "5 minutes"}
	says := func(ago time.Duration) string {
		n := &corev1.Node{}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(scene.Noon.Add(-ago))}}
		s := &Observation{Node: n, Now: scene.Noon, Asked: true, State: &lifecycle.State{Snapshot: &alerts.Snapshot{Replicas: []alerts.Replica{{}}}}}
		return s.askedFor(nil, s.readyBy(rule))
	}
	require.Equal(t, "Alertmanager does not have this alert", says(6*time.Minute))
	require.Contains(t, says(13*time.Minute), "although it should have since 2026-03-04T11:54:00Z: check in Prometheus that this rule is loaded")
}
