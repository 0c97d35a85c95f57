package admission

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// planted is a forged record of a leader's move that waits to be put back. Putting it back would
// write Kilo's key on other Nodes, with a value that the forger chose.
func planted() *remediations.Record {
	value, now := "evil", time.Now().UTC().Truncate(time.Second)
	r := requests.LeaderRecord(ledNode, leadsNode, remediations.PhaseActing)
	r.Began, r.Since, r.Deadline, r.Back = now, now, now.Add(time.Hour), &now
	r.Moves = []remediations.Move{{
		Location: requests.Location, From: leadsNode, To: memberNode, Before: map[string]*string{leadsNode: &value, memberNode: &value},
	}}
	r.Intent = &remediations.Intent{ID: r.ID + "-0-1", At: now, UID: "u", Successor: memberNode}
	return r
}

// A hostile kubelet writes a leader's record on its own Node, in observe mode. Admission denies
// that. Without admission, the leading Drydock still writes nothing on any other Node.
func TestAKubeletPlantsNoMoveOfALeader(t *testing.T) {
	l := lab.Shared(t)
	unreachable, plan := []any{"http://127.0.0.1:9"}, []any{map[string]any{"step": "promote-leader"}}
	y := newYard(t, l, "observe", map[string]any{
		"leaderElection": map[string]any{"enabled": false},
		"providers":      map[string]any{"kilo": map[string]any{"prometheus": unreachable}},
		"policies": []any{map[string]any{
			"name": "mesh-leader-degraded", "match": []any{`a="b"`}, "target": map[string]any{"location": "location"}, "onExhausted": "none", "plan": plan,
		}},
	})
	y.leads("")
	kubelet, err := l.NodeClient(ledNode)
	require.NoError(t, err)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{remediations.LocationKey: planted().Encode()}}})
	require.NoError(t, err)
	plant := func(options metav1.PatchOptions) error {
		_, err := kubelet.CoreV1().Nodes().Patch(t.Context(), ledNode, types.MergePatchType, patch, options, "status")
		return err
	}
	await(t, "the kubelet to be denied", func() bool { return denier(plant(metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})) == "policy" })
	require.Equal(t, "policy", denier(plant(metav1.PatchOptions{})))
	require.NotContains(t, y.node(ledNode).Annotations, remediations.LocationKey)

	removeAdmission(t, l)
	require.NoError(t, plant(metav1.PatchOptions{}), "the control: admission is what denied it")
	await(t, "Drydock to have judged the record", func() bool {
		return remediations.ReadJournal(y.node(ledNode)).Records[remediations.LocationKey].Phase == remediations.PhaseExhausted
	})
	for _, n := range []string{ledNode, leadsNode, memberNode, foreignNode} {
		require.NotContains(t, y.node(n).Annotations, admission.MeshLeaderKey, n)
	}
	y.leads("")
}
