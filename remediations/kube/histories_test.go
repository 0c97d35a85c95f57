package kube_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// TestWhatTwoReplicasObservedIsOneEntry: each replica observes the API servers by itself, and the
// report must count one repair. A replica's own repair has an entry of its own, and so has an
// observation at another time.
func TestWhatTwoReplicasObservedIsOneEntry(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	entry := func(id string, outcome remediations.Outcome, began time.Duration) remediations.Entry {
		return remediations.Entry{
			ID: id, Target: string(remediations.KindAPIServer), Policy: "apiserver-down", Cause: "8b2d1f0c3a4e5d67", Outcome: outcome,
			Began: noon.Add(began), Ended: noon.Add(began + 5*time.Minute),
		}
	}
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}})
	for _, e := range []remediations.Entry{
		entry("a", remediations.OutcomeObserved, 0), entry("b", remediations.OutcomeObserved, 3*time.Second), entry("a", remediations.OutcomeObserved, 0),
		entry("c", remediations.OutcomeSelfRecovered, 0), entry("d", remediations.OutcomeObserved, time.Hour),
	} {
		require.NoError(t, kube.Histories{Client: client}.Write(t.Context(), "cp-1", e))
	}
	n, err := client.CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
	require.NoError(t, err)
	var ids []string
	for _, e := range remediations.DecodeHistory(n.Annotations[remediations.HistoryKey]) {
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"d", "c", "a"}, ids)
}
