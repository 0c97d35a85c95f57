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
