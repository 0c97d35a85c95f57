package e2e

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// metal3 is the namespace of the BareMetalHosts and of their Machines.
const metal3 = "metal3"

var kindsOfMetal3 sync.Once

// bareMetal creates a Node with a BareMetalHost behind it, and simulates the operator that reboots
// the host. The host is read again each time.
func (y *yard) bareMetal(node string) (host func() *unstructured.Unstructured, rebooted func() []string) {
	y.t.Helper()
	ctx := context.WithoutCancel(y.t.Context())
	client, err := dynamic.NewForConfig(y.lab.AdminConfig())
	require.NoError(y.t, err)
	kindsOfMetal3.Do(func() { require.NoError(y.t, y.lab.AddMetal3Kinds(ctx)) })
	id, err := y.lab.AddBareMetal(ctx, metal3, node, node)
	require.NoError(y.t, err)
	require.NoError(y.t, y.lab.AddNode(ctx, lab.NodeSpec{Name: node, ProviderID: id}))
	y.t.Cleanup(func() {
		require.NoError(y.t, y.lab.Client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}))
	})
	rebooted, err = y.lab.StartBareMetalOperator(y.t.Context(), map[string]string{"host-" + node: node})
	require.NoError(y.t, err)
	return func() *unstructured.Unstructured {
		one, err := client.Resource(lab.BareMetalHosts).Namespace(metal3).Get(ctx, "host-"+node, metav1.GetOptions{})
		require.NoError(y.t, err)
		return one
	}, rebooted
}

// byAnnotation is the provider that asks the baremetal-operator.
func byAnnotation() map[string]any { return map[string]any{"preset": "metal3", "namespace": metal3} }

// byMetal3 returns a configuration that lets Metal3 reboot its own nodes, and Civo all others.
func byMetal3() lab.DrydockOptions {
	return lab.DrydockOptions{Config: map[string]any{
		"providers": map[string]any{"annotation": byAnnotation()}, "limits": map[string]any{"startupGrace": "0s"},
		"policies": []any{policy(map[string]any{"plan": []any{reset(patience)}})},
	}}
}

func (y *yard) nothingLeft(host func() *unstructured.Unstructured) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { one := host(); return len(one.GetAnnotations()) == 0 && len(one.GetLabels()) == 0 },
		lab.Patience, 100*time.Millisecond, "nothing of Drydock's is left on the host")
}

// The whole chain: alert, witness, intent, the annotation for the baremetal-operator, a new boot
// ID, and nothing left behind.
func TestMetal3RebootsTheMachine(t *testing.T) {
	y := newYard(t)
	host, rebooted := y.bareMetal("metal-0")
	y.run(byMetal3())
	before := y.node("metal-0").Status.NodeInfo.BootID

	y.fail("metal-0")

	e := y.ended("metal-0")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("metal-0").Status.NodeInfo.BootID)
	require.Equal(t, []string{"metal-0"}, rebooted(), "once")
	require.Empty(t, y.civo.CallsTo(civosim.Any))
	y.nothingLeft(host)
}

// Whatever happens to the request that writes the annotation, the operator reboots the machine
// once, and nothing is left behind. The end of the repair also changes the host.
func TestAFaultLeavesOneAnnotation(t *testing.T) {
	aFaultLeavesOneRequest(t, func(y *yard, name string) requested {
		node := "metal-" + name
		host, rebooted := y.bareMetal(node)
		return requested{
			node: node, config: byMetal3(), step: reset, rebooted: rebooted,
			asks: func(in *http.Request, body []byte) bool {
				return in.Method == http.MethodPatch && strings.Contains(in.URL.Path, "/baremetalhosts/") && bytes.Contains(body, []byte(`"reboot.metal3.io":"{`))
			},
			ended: func(remediations.Entry, int) {
				y.nothingLeft(host)
				require.Equal(y.t, []string{node}, rebooted(), "once")
			},
		}
	})
}
