package clusterapi

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// A pod that must not be evicted holds Cluster API's drain for ever: the drain continues until a
// person acts. A policy that continues after the time of Drydock's own drain also ends Cluster
// API's drain.
func TestADrainThatHangsIsEndedOnlyByThePolicy(t *testing.T) {
	for name, ends := range map[string]bool{"replace": false, "drain": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, "drain-"+name, true)
			app := "held-" + name
			e.App(app, nil)
			e.Bind(app, e.Nodes[0])
			one := intstr.FromInt32(1)
			budgets := e.Lab.Client().PolicyV1().PodDisruptionBudgets("default")
			_, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: app},
				Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)

			plugin, err := e.Lab.PluginProgram(t.Context()) // before the repair begins, because it would use up the repair's time
			require.NoError(t, err)
			old, machine := e.Node(e.Nodes[0]), e.Object(e.Nodes[0])
			e.EndEvicted(app, old.Name)
			plan, attempt := []any{owners.Step(owners.Proven)}, "-0-1"
			if ends {
				plan, attempt = append([]any{m{"step": "drain", "timeout": "3s", "onTimeout": "continue"}}, plan...), "-1-1"
			}
			e.Run(lab.DrydockOptions{}, plan...)
			e.Fail(old.Name)
			excluded := func() bool {
				return strings.Contains(strings.Join(e.Seen()[machine], " "), "not drained again")
			}
			if !ends {
				e.Eventually(func() bool {
					one, err := capi.Dynamic.Resource(lab.CAPIMachines).Namespace(lab.ClusterAPINamespace).Get(t.Context(), old.Name, metav1.GetOptions{})
					return err == nil && strings.Contains(fmt.Sprint(one.Object["status"]), "disruption budget "+app)
				}, "the budget holds Cluster API's drain")
				e.Eventually(func() bool {
					r := remediations.Registry(nil).ReadJournal(e.Node(old.Name)).Record
					return r != nil && strings.Contains(r.Note, "Machine "+lab.ClusterAPINamespace+"/"+old.Name+": DrainingNode: ") && strings.Contains(r.Note, "disruption budget "+app)
				}, "Drydock's own record says while it holds which pod and which budget it is")
				why := exec.CommandContext(t.Context(), plugin, "--kubeconfig", e.Lab.AdminKubeconfig(), "why", old.Name)
				said, _ := why.CombinedOutput() // its exit code is looked at
				require.Equal(t, 4, why.ProcessState.ExitCode(), "%s", said)
				text := strings.Join(strings.Fields(string(said)), " ")
				require.Contains(t, text, old.Name+" is under repair: replace:1")
				require.Contains(t, text, "DrainingNode: ")
				require.Contains(t, text, "disruption budget "+app)
				require.False(t, excluded())
				require.NoError(t, budgets.Delete(t.Context(), app, metav1.DeleteOptions{}))
			}
			entry, fresh := e.Ended()
			require.Equal(t, remediations.OutcomeRecovered, entry.Outcome, entry.Why)
			require.NotEqual(t, old.UID, fresh.UID)
			require.Equal(t, ends, excluded())
			require.Contains(t, strings.Join(e.Seen()[machine], " "), "annotated by "+entry.ID+attempt)
		})
	}
}
