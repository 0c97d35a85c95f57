package kilo

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// TestASuccessorsKubeletStillRenewsItsLease: a location has no power, but Kubernetes still reports
// its members as Ready, and Kilo still counts them.
func TestASuccessorsKubeletStillRenewsItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*coordinationv1.Lease)
		want   string // empty: it may lead
	}{
		"renewed just now":         {func(l *coordinationv1.Lease) { *l.Spec.RenewTime = metav1.NewMicroTime(noon) }, ""},
		"one renewal is missing":   {func(l *coordinationv1.Lease) { *l.Spec.RenewTime = metav1.NewMicroTime(noon.Add(-19 * time.Second)) }, ""},
		"two renewals are missing": {func(l *coordinationv1.Lease) { *l.Spec.RenewTime = metav1.NewMicroTime(noon.Add(-20 * time.Second)) }, "its kubelet last renewed its lease 20s ago"},
		"a lease of half the time": {func(l *coordinationv1.Lease) {
			*l.Spec.RenewTime, *l.Spec.LeaseDurationSeconds = metav1.NewMicroTime(noon.Add(-10*time.Second)), 20
		}, "its kubelet last renewed its lease 10s ago"},
		"its clock is a bit ahead":   {func(l *coordinationv1.Lease) { *l.Spec.RenewTime = metav1.NewMicroTime(noon.Add(time.Minute)) }, ""},
		"its clock is far ahead":     {func(l *coordinationv1.Lease) { *l.Spec.RenewTime = metav1.NewMicroTime(noon.Add(2 * time.Minute)) }, "its kubelet renewed its lease 2m in the future; check the node's clock"},
		"it was never renewed":       {func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, "its kubelet has no lease"},
		"it does not say how long":   {func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }, "its kubelet has no lease"},
		"it is another node's lease": {func(l *coordinationv1.Lease) { l.Name = "east-9" }, "its kubelet has no lease"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dark(t, nil, east()...)
			leases := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
			require.NoError(t, leases.Delete(t.Context(), "east-1", metav1.DeleteOptions{}))
			l := lease("east-1", noon)
			c.change(l)
			_, err := leases.Create(t.Context(), l, metav1.CreateOptions{})
			require.NoError(t, err)
			saw := s.Look(t.Context(), "east")
			require.Empty(t, saw.Unknown)
			if c.want == "" {
				require.Equal(t, []string{"east-1", "east-2", "east-3"}, successors(saw))
				return
			}
			require.Equal(t, []string{"east-2", "east-3"}, successors(saw))
			require.Equal(t, c.want, saw.Refused["east-1"])
		})
	}

	s := dark(t, nil, east()...)
	for _, n := range easterners[1:] {
		_, err := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(t.Context(), lease(n, noon.Add(-45*time.Second)), metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	saw := s.Look(t.Context(), "east")
	require.Empty(t, saw.Candidates, "no member has power")
	require.Empty(t, saw.Unknown, "which is known")
	for _, n := range easterners[1:] {
		require.Equal(t, "its kubelet last renewed its lease 45s ago", saw.Refused[n])
	}
}

// TestUnreadableLeasesGiveNoData: then no node is proposed, and the proof of a move is
// unchanged.
func TestUnreadableLeasesGiveNoData(t *testing.T) {
	s := dark(t, nil, east()...)
	s.client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
	saw := s.Look(t.Context(), "east")
	require.Contains(t, saw.Unknown, `no other node of location "east" can lead instead: east-1: listing the nodes' leases: forbidden`)
	require.Empty(t, saw.Candidates)
	s.fromWest("1111", easterners[1:]...)
	saw = s.Look(t.Context(), "east")
	require.True(t, saw.Reached)
	require.Empty(t, saw.Unknown)
	require.Empty(t, saw.Candidates)
}
