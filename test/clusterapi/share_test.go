package clusterapi

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// The MachineHealthCheck requests a replacement of a machine that is not Ready for 5 s. Drydock's
// BMC reboots one such machine, which takes longer than that. The MachineHealthCheck leaves that
// machine alone. It has the other machine replaced, because Drydock has no step for that one.
func TestAMachineHealthCheckLeavesAMachineUnderRepairAlone(t *testing.T) {
	e := newEnv(t, "shared", true)
	old, object, other := e.Node(e.Nodes[0]), e.Object(e.Nodes[0]), e.Object(e.Nodes[1])
	back := make(chan struct{})
	bmc, err := e.Lab.StartBMC(t.Context(), old.Name, lab.BMCOptions{Back: back})
	require.NoError(t, err)
	t.Cleanup(bmc.Close)
	e.Run(lab.DrydockOptions{Config: m{"providers": m{"redfish": m{"bmcs": []any{bmc.Config}}}}},
		m{"step": "reboot", "wait": owners.Proven.String(), "attempts": 1})

	e.Fail(old.Name)
	e.Eventually(func() bool { return len(bmc.Resets()) == 1 }, "the machine reboots")
	intent := remediations.ReadJournal(e.Node(old.Name)).Record.Intent
	require.NotNil(t, intent)
	attempt := owners.FirstNamed(intent.ID)
	finds(t, "shared", 5)
	e.Fail(e.Nodes[1])
	e.Eventually(func() bool { return slices.Contains(e.Seen()[other], "deleted") }, "Cluster API replaces the machine that nobody repairs")
	require.Equal(t, []string{kept(attempt)}, e.Seen()[object])

	close(back)
	entry, same := e.Ended()
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, []string{"reboot:1"}, entry.Steps.Texts())
	require.Equal(t, old.UID, same.UID)
	require.Equal(t, entry.ID+"-0-1", attempt)
	require.Len(t, bmc.Resets(), 1)
	e.Eventually(func() bool {
		one, err := capi.Dynamic.Resource(lab.CAPIMachines).Namespace(lab.ClusterAPINamespace).Get(t.Context(), old.Name, metav1.GetOptions{})
		require.NoError(t, err)
		_, skipped := one.GetAnnotations()[skips]
		_, labelled := one.GetLabels()["drydock.dev/under-repair"]
		return !skipped && !labelled && string(one.GetUID()) == object
	}, "nothing of Drydock's is left on the Machine")
	require.Equal(t, []string{kept(attempt)}, e.Seen()[object], "the Machine was never to be replaced")
}
