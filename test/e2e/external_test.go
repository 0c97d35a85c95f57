package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// remediators is the namespace of the remediators' templates and objects.
const remediators = "remediators"

// external is the step that asks SelfNodeRemediation.
func external(wait string) map[string]any {
	return map[string]any{"step": "external", "wait": wait, "attempts": 1, "template": map[string]any{
		"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "namespace": remediators, "name": "own",
	}}
}

var kindsOfRemediators sync.Once

// remediator plays SelfNodeRemediation for these nodes, some of which it never reboots.
func (y *yard) remediator(nodes []string, idle ...string) (*lab.Remediator, dynamic.ResourceInterface) {
	y.t.Helper()
	client, err := dynamic.NewForConfig(y.lab.AdminConfig())
	require.NoError(y.t, err)
	objects := client.Resource(lab.SelfNodeRemediations).Namespace(remediators)
	kindsOfRemediators.Do(func() {
		require.NoError(y.t, y.lab.AddRemediatorKinds(context.WithoutCancel(y.t.Context())))
		templates := lab.SelfNodeRemediations.GroupVersion().WithResource("selfnoderemediationtemplates")
		_, err := client.Resource(templates).Namespace(remediators).Create(y.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": templates.GroupVersion().String(), "kind": "SelfNodeRemediationTemplate", "metadata": map[string]any{"name": "own"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"remediationStrategy": "Automatic"}}},
		}}, metav1.CreateOptions{})
		require.NoError(y.t, err)
	})
	for _, node := range nodes {
		y.annotate(node, "is-reboot-capable.self-node-remediation.medik8s.io", "true")
	}
	r, err := y.lab.StartRemediator(y.t.Context(), idle...)
	require.NoError(y.t, err)
	return r, objects
}

// remediating is a configuration whose plan asks the remediator first, and then the provider. waits is for how long, by node.
func remediating(waits map[string]string) lab.DrydockOptions {
	var policies []any
	for node, wait := range waits {
		policies = append(policies, for1(node, resets(external(wait), reset(patience))))
	}
	return lab.DrydockOptions{Config: map[string]any{
		"providers": map[string]any{"external": map[string]any{}}, "limits": map[string]any{"concurrent": 2, "startupGrace": "0s"}, "policies": policies,
	}}
}

func (y *yard) noneLeft(objects dynamic.ResourceInterface, nodes ...string) {
	y.t.Helper()
	for _, node := range nodes {
		require.Eventually(y.t, func() bool {
			_, err := objects.Get(y.t.Context(), node, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, within, 100*time.Millisecond, "the object about %s is deleted", node)
	}
}

// The whole chain: alert, witness, intent, the remediation object, a machine that comes back with a new boot ID, and the object's end.
// A remediator that does nothing is told that it timed out, and the plan goes on.
func TestARemediatorRebootsTheMachine(t *testing.T) {
	y := newYard(t)
	r, objects := y.remediator([]string{"node-67", "node-68"}, "node-68")
	y.run(remediating(map[string]string{"node-67": patience, "node-68": "5s"}))
	before := y.node("node-67").Status.NodeInfo.BootID

	y.fail("node-67")
	y.fail("node-68")
	e, f := y.ended("node-67"), y.ended("node-68")
	y.noneLeft(objects, "node-67", "node-68") // the remediator has seen all of both

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"external:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("node-67").Status.NodeInfo.BootID)
	require.Equal(t, []string{e.ID + "-0-1"}, r.Rebooted())
	require.Equal(t, remediations.OutcomeRecovered, f.Outcome, f.Why)
	require.Equal(t, []string{"external:1", "reboot:1"}, f.Steps.Texts())
	require.Equal(t, []string{f.ID + "-0-1"}, r.Stopped())
	require.Len(t, y.civo.Done(civosim.Any), 1)
}

// Whatever becomes of the request that makes the object, one object reboots the machine, and it is deleted.
func TestAFaultLeavesOneObject(t *testing.T) {
	aFaultLeavesOneRequest(t, func(y *yard, _ string) requested {
		const node = "node-69"
		r, objects := y.remediator([]string{node})
		return requested{
			node: node, config: remediating(nil), step: external, rebooted: r.Rebooted,
			asks: func(in *http.Request, _ []byte) bool {
				return in.Method == http.MethodPost && strings.HasSuffix(in.URL.Path, "/selfnoderemediations")
			},
			ended: func(e remediations.Entry, attempts int) {
				y.noneLeft(objects, node)
				require.Equal(y.t, []string{fmt.Sprintf("%s-%d-1", e.ID, attempts-1)}, r.Rebooted())
			},
		}
	})
}
