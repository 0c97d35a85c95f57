package clusterapi

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/providers/redfish/sim"
	"drydock.dev/drydock/test/owners"
)

// One installation has machines of Cluster API, of Civo, and with a BMC, and one plan for all of
// them. Each machine is cured by its own provider. While one is under repair, the limit holds the
// others, whatever their provider is. Steps without a provider, and configured providers that are
// missing, are reported before any repair.
func TestEachMachineIsCuredByItsOwnProvider(t *testing.T) {
	e := newEnv(t, "several", true)
	require.NoError(t, e.Lab.AddNode(t.Context(), lab.NodeSpec{Name: "civo-0", ProviderID: "civo://" + uuid.NewString()}))
	t.Cleanup(func() {
		_ = e.Lab.Client().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), "civo-0", metav1.DeleteOptions{})
	})
	civo, err := e.Lab.StartCivo(t.Context(), lab.CivoOptions{RebootTime: time.Second})
	require.NoError(t, err)
	t.Cleanup(civo.Close)
	back := make(chan struct{})
	bmc, err := e.Lab.StartBMC(t.Context(), "node-0", lab.BMCOptions{Back: back})
	require.NoError(t, err)
	t.Cleanup(bmc.Close)
	gone := map[string]any{}
	for k, v := range bmc.Config {
		gone[k] = v
	}
	gone["node"] = "node-99"
	d := e.Run(lab.DrydockOptions{Civo: civo, Config: m{
		"providers": m{"redfish": m{"bmcs": []any{bmc.Config, gone}}},
		"limits":    m{"concurrent": 1, "unhealthy": "60%"},
	}}, m{"step": "reboot", "wait": owners.Proven.String(), "attempts": 1}, owners.Step(owners.Proven))

	check := func() string {
		said, err := exec.CommandContext(t.Context(), e.Lab.DrydockProgram(), "check", d.ConfigFile, "--kubeconfig", e.Lab.AdminKubeconfig()).Output()
		require.NoError(t, err)
		return string(said)
	}
	said := check()
	for _, says := range []string{
		"providers.civo carries out reboot, replace for Nodes whose spec.providerID begins with civo://\n",
		"providers.redfish carries out reboot for the 2 Nodes it names\n",
		"providers.clusterAPI carries out replace for any Node\n",
		"reboot: ", "civo on 1 Node (civo-0)", "redfish on 1 Node (node-0)", "no provider on ", // however many Nodes the other tests have left
		"replace: ",
		"warning: provider redfish lists 1 Node that the cluster does not have: node-99\n",
		"warning: no provider serves Node ", " for the step reboot: its spec.providerID is ", // whichever is the first
	} {
		require.Contains(t, said, says)
	}
	for line := range strings.Lines(said) {
		require.False(t, strings.Contains(line, "warning: ") && strings.Contains(line, "civo-0"), "nothing is wrong with it: %s", line)
		if strings.Contains(line, ": replace: ") {
			require.Contains(t, line, "clusterAPI on ")
			require.Contains(t, line, "civo on 1 Node (civo-0)", "who knows the Node by its spec.providerID goes before who serves any")
		}
	}
	require.NotContains(t, said, "MachineHealthCheck "+lab.ClusterAPINamespace+"/several", "it acts on requests alone; those of other tests may not")
	finds(t, "several", 7200)
	require.Contains(t, check(), "warning: two systems may repair the same node: MachineHealthCheck "+lab.ClusterAPINamespace+"/several repairs 2 Nodes that Drydock's policies also repair: ")

	old, machine := e.Node(e.Nodes[0]), e.Object(e.Nodes[0])
	boots := map[string]string{}
	for _, name := range []string{"node-0", "civo-0"} {
		boots[name] = e.Node(name).Status.NodeInfo.BootID
	}
	atOnce := mostSlots(e)
	e.Fail("node-0")
	e.Eventually(func() bool { return len(bmc.Resets()) > 0 }, "the BMC resets its machine")
	e.Fail("civo-0")
	e.Fail(old.Name)
	for _, name := range []string{"civo-0", old.Name} {
		e.Eventually(func() bool { return len(remediations.ReadJournal(e.Node(name)).Alerts) > 0 }, "the alert of %s arrives", name)
	}
	e.Eventually(func() bool { return ledgerOf(e).Status.Holds[remediations.ReasonAtLimit] != "" }, "the limit holds the others")
	require.Empty(t, civo.Done(civosim.Any))
	require.Empty(t, e.Seen())
	close(back)

	entry, fresh := e.Ended()
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
	require.Equal(t, []string{"replace:1"}, entry.Steps.Texts(), "its reboot is nobody's, and is passed over")
	e.RequireReplaced(old, fresh, machine, entry.ID+"-1-1")
	for name, boot := range boots {
		entry := endedOf(e, name)
		require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, "%s: %s", name, entry.Why)
		require.Equal(t, []string{"reboot:1"}, entry.Steps.Texts(), name)
		require.NotEqual(t, boot, e.Node(name).Status.NodeInfo.BootID, name)
	}
	require.Equal(t, []sim.Done{{Serial: "node-0", Kind: "ForceRestart"}}, bmc.Resets())
	require.Len(t, civo.Done(civosim.Any), 1)
	require.Len(t, civo.Done(civosim.HardReboots), 1)
	require.Equal(t, 1, atOnce())
}

func ledgerOf(e *owners.Env) *ledger.Ledger {
	e.T.Helper()
	kept, err := e.Lab.Client().CoreV1().ConfigMaps(lab.Namespace).Get(e.T.Context(), "drydock-ledger", metav1.GetOptions{})
	require.NoError(e.T, err)
	l, err := ledger.Decode(kept.Data)
	require.NoError(e.T, err)
	return l
}

// mostSlots watches the ledger. It returns a function that stops and returns the largest number of
// repairs that were under way at the same time.
func mostSlots(e *owners.Env) func() int {
	e.T.Helper()
	w, err := e.Lab.Client().CoreV1().ConfigMaps(lab.Namespace).Watch(e.T.Context(), metav1.ListOptions{FieldSelector: "metadata.name=drydock-ledger"})
	require.NoError(e.T, err)
	most, over := 0, make(chan struct{})
	go func() {
		defer close(over)
		for event := range w.ResultChan() {
			if kept, ok := event.Object.(*corev1.ConfigMap); ok {
				if l, err := ledger.Decode(kept.Data); err == nil {
					most = max(most, len(l.Slots))
				}
			}
		}
	}()
	return func() int {
		w.Stop()
		<-over
		return most
	}
}

// endedOf returns how the repair of a node ended that keeps its machine.
func endedOf(e *owners.Env, name string) (entry remediations.Entry) {
	e.T.Helper()
	e.Eventually(func() bool {
		history := remediations.DecodeHistory(e.Node(name).Annotations[remediations.HistoryKey])
		if len(history) > 0 {
			entry = history[0]
		}
		return len(history) > 0
	}, "the repair of %s ends", name)
	return entry
}
