package clusterapi

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/redfish/sim"
)

// One installation with machines of Cluster API, of Civo and with a BMC, and one plan for all of them: each is cured by its own
// provider. While one is under repair the limit holds the others, whosever they are. What has no provider, or is named and not there,
// is said beforehand.
func TestEachMachineIsCuredByItsOwnProvider(t *testing.T) {
	y := newYard(t, "several", true)
	require.NoError(t, y.lab.AddNode(t.Context(), lab.NodeSpec{Name: "civo-0", ProviderID: "civo://" + uuid.NewString()}))
	t.Cleanup(func() {
		_ = y.lab.Client().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), "civo-0", metav1.DeleteOptions{})
	})
	civo, err := y.lab.StartCivo(t.Context(), lab.CivoOptions{RebootTime: time.Second})
	require.NoError(t, err)
	t.Cleanup(civo.Close)
	back := make(chan struct{})
	bmc, err := y.lab.StartBMC(t.Context(), "node-0", lab.BMCOptions{Back: back})
	require.NoError(t, err)
	t.Cleanup(bmc.Close)
	gone := map[string]any{}
	for k, v := range bmc.Config {
		gone[k] = v
	}
	gone["node"] = "node-99"
	d := y.run(lab.DrydockOptions{Civo: civo, Config: m{
		"providers": m{"redfish": m{"bmcs": []any{bmc.Config, gone}}},
		"limits":    m{"concurrent": 1, "unhealthy": "60%"},
	}}, m{"step": "reboot", "wait": "2m", "attempts": 1}, step(proven))

	check, err := exec.CommandContext(t.Context(), y.lab.DrydockProgram(), "check", d.ConfigFile, "--kubeconfig", y.lab.AdminKubeconfig()).Output()
	require.NoError(t, err)
	for _, says := range []string{
		"providers.civo carries out reboot, replace for Nodes whose spec.providerID begins with civo://\n",
		"providers.redfish carries out reboot for the 2 Nodes it names\n",
		"providers.clusterAPI carries out replace for any Node\n",
		"warning: redfish names 1 Nodes that the cluster does not have: node-99\n",
		"warning: no provider serves Node node-1 for the step reboot: its spec.providerID is ",
	} {
		require.Contains(t, string(check), says)
	}
	require.NotContains(t, string(check), "civo-0")

	old, machine := y.node(y.nodes[0]), y.machine(y.nodes[0])
	boots := map[string]string{}
	for _, name := range []string{"node-0", "civo-0"} {
		boots[name] = y.node(name).Status.NodeInfo.BootID
	}
	atOnce := y.mostSlots()
	y.fail("node-0")
	y.eventually(func() bool { return len(bmc.Resets()) > 0 }, "the BMC resets its machine")
	y.fail("civo-0")
	y.fail(old.Name)
	for _, name := range []string{"civo-0", old.Name} {
		y.eventually(func() bool { return len(remediations.ReadJournal(y.node(name)).Alerts) > 0 }, "the alert of %s arrives", name)
	}
	y.eventually(func() bool { return y.ledger().Status.Holds[remediations.AtLimit] != "" }, "the limit holds the others")
	require.Empty(t, civo.Done(civosim.Any))
	require.Empty(t, y.seen())
	close(back)

	e, fresh := y.ended()
	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"replace:1"}, e.Steps, "its reboot is nobody's, and is passed over")
	y.requireReplaced(old, fresh, machine, "annotated by "+e.ID+"-1-1", "deleted")
	for name, boot := range boots {
		e := y.endedOf(name)
		require.Equal(t, remediations.Recovered, e.Outcome, "%s: %s", name, e.Why)
		require.Equal(t, []string{"reboot:1"}, e.Steps, name)
		require.NotEqual(t, boot, y.node(name).Status.NodeInfo.BootID, name)
	}
	require.Equal(t, []sim.Done{{Serial: "node-0", Kind: "ForceRestart"}}, bmc.Resets())
	require.Len(t, civo.Done(civosim.Any), 1)
	require.Len(t, civo.Done(civosim.HardReboots), 1)
	require.Equal(t, 1, atOnce())
}

func (y *yard) ledger() *remediations.Ledger {
	y.t.Helper()
	kept, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Get(y.t.Context(), "drydock-ledger", metav1.GetOptions{})
	require.NoError(y.t, err)
	l, err := remediations.DecodeLedger(kept.Data)
	require.NoError(y.t, err)
	return l
}

// mostSlots watches the ledger, and returns how many repairs were under way at once until it is called.
func (y *yard) mostSlots() func() int {
	y.t.Helper()
	w, err := y.lab.Client().CoreV1().ConfigMaps(lab.Namespace).Watch(y.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=drydock-ledger"})
	require.NoError(y.t, err)
	most, over := 0, make(chan struct{})
	go func() {
		defer close(over)
		for e := range w.ResultChan() {
			if kept, ok := e.Object.(*corev1.ConfigMap); ok {
				if l, err := remediations.DecodeLedger(kept.Data); err == nil {
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

// endedOf is how the repair of a node ended that keeps its machine.
func (y *yard) endedOf(name string) (e remediations.Entry) {
	y.t.Helper()
	y.eventually(func() bool {
		history := remediations.DecodeHistory(y.node(name).Annotations[remediations.HistoryKey])
		if len(history) > 0 {
			e = history[0]
		}
		return len(history) > 0
	}, "the repair of %s ends", name)
	return e
}
