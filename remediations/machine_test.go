package remediations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAProviderIDInOtherLettersIsAnotherMachine: some clouds write the same ID once in upper and
// once in lower case. Drydock treats these as two machines, as Cluster API does, because the repair
// of one machine must never continue on another.
func TestAProviderIDInOtherLettersIsAnotherMachine(t *testing.T) {
	const id = "azure:///subscriptions/5F/resourceGroups/MC_prod/virtualMachines/0"
	n := scene.Bare("n1")
	n.Spec.ProviderID = id
	require.True(t, SameMachine("another", id, n), "the control")
	require.True(t, IsMachine(n, id))
	n.Spec.ProviderID = "azure:///subscriptions/5f/resourcegroups/mc_prod/virtualmachines/0"
	require.False(t, SameMachine(string(n.UID), id, n))
	require.False(t, IsMachine(n, id))
}

// TestOnlyTheNodesOwnRecordIsOfItsMachine: another machine has the Node's name, with all
// annotations of the Node before it. The node's record is of the machine before. A sidecar's record
// names its pod and a location's record its location, so these repairs continue by what is observed
// of the pod and the location.
func TestOnlyTheNodesOwnRecordIsOfItsMachine(t *testing.T) {
	sidecar := SidecarKey(scene.ThePod)
	n := scene.Bare("n1")
	own := Record{
		V: RecordVersion, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhaseVerifying, Step: StepRef{Name: "reboot", Attempt: 1},
		Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Intent: &Intent{ID: "r1-0-1", At: scene.Noon, UID: string(n.UID), ProviderID: "civo://m1"},
	}
	n.Annotations = map[string]string{
		NodeRepairKey: own.Encode(), LocationKey: scene.LocationRecord(PhaseVerifying).Encode(), sidecar: scene.SidecarRecord(PhaseVerifying).Encode(),
	}
	for providerID, same := range map[string]bool{"civo://m1": true, "civo://m2": false} {
		n.Spec.ProviderID = providerID
		j := ReadJournal(n)
		require.NoError(t, j.Malformed)
		require.Equal(t, same, j.Record != nil)
		require.Equal(t, !same, j.Superseded[NodeRepairKey] != nil)
		require.Contains(t, j.Records, LocationKey)
		require.Contains(t, j.Records, sidecar)
	}
}
