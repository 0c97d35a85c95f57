package kube_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// TestNodesInRepairAreFoundByAnIndex: finding them takes an amount of memory that does not grow
// with the fleet.
func TestNodesInRepairAreFoundByAnIndex(t *testing.T) {
	phase := func(p remediations.Phase) string { return fmt.Sprintf(`{"phase":%q}`, p) }
	allocated := map[int]float64{}
	for _, size := range []int{10, 5000} {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, kube.RepairIndex())
		for i := range size {
			require.NoError(t, indexer.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("well-%d", i)}}))
		}
		for name, meta := range map[string]metav1.ObjectMeta{
			"label":    {Labels: map[string]string{remediations.PhaseLabel: string(remediations.PhaseVerifying)}},
			"record":   {Annotations: map[string]string{remediations.NodeRepairKey: phase(remediations.PhaseActing)}},
			"location": {Annotations: map[string]string{remediations.LocationKey: phase(remediations.PhaseVerifying)}},
			"pending":  {Annotations: map[string]string{remediations.NodeRepairKey: phase(remediations.PhasePending)}},
		} {
			meta.Name = name
			require.NoError(t, indexer.Add(&corev1.Node{ObjectMeta: meta}))
		}
		fleet := kube.Fleet{Indexer: indexer}
		var names []string
		for _, n := range fleet.Repairing() {
			names = append(names, n.Name)
		}
		require.ElementsMatch(t, []string{"label", "record", "location"}, names)
		allocated[size] = testing.AllocsPerRun(10, func() { fleet.Repairing() })
	}
	require.InDelta(t, allocated[10], allocated[5000], 2)
}
