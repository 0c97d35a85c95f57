package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// A person has paused the Cluster. The hold names that before the intent, and nothing is requested.
// When the Cluster is no longer paused, the same Machine is replaced.
func TestWhatClusterAPIRespectsIsHeld(t *testing.T) {
	e := newEnv(t, "held", true)
	old, object := e.Node(e.Nodes[0]), e.Object(e.Nodes[0])
	clusters := lab.CAPIMachines.GroupVersion().WithResource("clusters")
	pause := func(paused bool) {
		_, err := capi.Dynamic.Resource(clusters).Namespace(lab.ClusterAPINamespace).Patch(context.WithoutCancel(t.Context()), lab.ClusterAPICluster,
			types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	e.Eventually(func() bool { // a paused Cluster's status is not updated, and a lost connection is a hold of its own
		one, err := capi.Dynamic.Resource(clusters).Namespace(lab.ClusterAPINamespace).Get(t.Context(), lab.ClusterAPICluster, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			return c.(m)["type"] == "RemoteConnectionProbe" && c.(m)["status"] == "True"
		})
	}, "Cluster API is connected to the Nodes")
	pause(true)
	t.Cleanup(func() { pause(false) })
	d, proxy := e.Behind(owners.Step(owners.Proven))
	requests := e.Counting(proxy)

	e.Fail(old.Name)
	e.Eventually(func() bool { // a paused Cluster holds all its nodes, so the ledger names it once
		kept, err := e.Lab.Client().CoreV1().ConfigMaps(lab.Namespace).Get(t.Context(), "drydock-ledger", metav1.GetOptions{})
		return err == nil && strings.Contains(kept.Data["status"], "Cluster "+lab.ClusterAPINamespace+"/"+lab.ClusterAPICluster+" is paused")
	}, "the repair is held")
	require.Nil(t, remediations.ReadJournal(e.Node(old.Name)).Record, "no intent is on the Node")
	require.Empty(t, e.Seen())
	require.Zero(t, requests())

	pause(false)
	d.Kill() // a restarted Drydock asks Cluster API at once, and not only after some minutes
	require.NoError(t, e.Lab.Restart(t.Context(), d))
	entry, fresh := e.Ended()
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, 1, requests())
	e.RequireReplaced(old, fresh, object, entry.ID+"-0-1")
}
