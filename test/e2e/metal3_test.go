package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// bareMetal makes a Node with a BareMetalHost of Metal3's behind it, and plays the operator that reboots it. The host is read anew each
// time.
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

// byMetal3 is a configuration whose reboots of Metal3's nodes are Metal3's, beside Civo for all others.
func byMetal3() lab.DrydockOptions {
	return lab.DrydockOptions{Config: map[string]any{
		"providers": map[string]any{"metal3": map[string]any{"namespace": metal3}}, "limits": map[string]any{"startupGrace": "0s"},
		"policies": []any{policy(map[string]any{"plan": []any{reset(patience)}})},
	}}
}

func (y *yard) rebootedByMetal3(node string, host func() *unstructured.Unstructured, rebooted func() []string, before string) {
	y.t.Helper()
	e := y.ended(node)
	require.Equal(y.t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(y.t, []string{"reboot:1"}, e.Steps)
	require.NotEqual(y.t, before, y.node(node).Status.NodeInfo.BootID)
	require.Equal(y.t, []string{node}, rebooted(), "once")
	require.Empty(y.t, y.civo.CallsTo(civosim.Any))
	require.Eventually(y.t, func() bool { one := host(); return len(one.GetAnnotations()) == 0 && len(one.GetLabels()) == 0 },
		within, 100*time.Millisecond, "nothing of Drydock's is left on the host")
}

// The whole chain: alert, witness, intent, the annotation for the baremetal-operator, a new boot ID, and nothing left behind.
func TestMetal3RebootsTheMachine(t *testing.T) {
	y := newYard(t)
	host, rebooted := y.bareMetal("metal-0")
	y.run(byMetal3())
	before := y.node("metal-0").Status.NodeInfo.BootID

	y.fail("metal-0")

	y.rebootedByMetal3("metal-0", host, rebooted, before)
}

// Drydock dies when the annotation is written and before it hears of it: the reboot is one, and its boot ID the proof.
func TestKilledWhenTheHostIsAnnotated(t *testing.T) {
	y := newYard(t)
	host, rebooted := y.bareMetal("metal-1")
	proxy, err := y.lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	o := byMetal3()
	o.Server = proxy.URL()
	d := y.run(o)
	var once sync.Once
	proxy.After(func(res *http.Response) lab.Verdict {
		verdict := lab.Pass
		if res.Request.Method == http.MethodPatch && strings.Contains(res.Request.URL.Path, "/baremetalhosts/") {
			once.Do(func() { verdict = lab.Reset; d.Kill() })
		}
		return verdict
	})
	before := y.node("metal-1").Status.NodeInfo.BootID

	y.fail("metal-1")
	lab.AwaitEnd(t, d.Process, within)
	require.NoError(t, y.lab.Restart(t.Context(), d))

	y.rebootedByMetal3("metal-1", host, rebooted, before)
}

// The API server refuses the annotation of the first attempt: nothing was done, the record and an Event say so, and the next attempt is one
// request, too.
func TestARefusedAnnotationIsOneRequestAnAttempt(t *testing.T) {
	y := newYard(t)
	host, rebooted := y.bareMetal("metal-2")
	proxy, err := y.lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	o := byMetal3()
	o.Config["policies"] = []any{policy(map[string]any{"plan": []any{reset("5s"), reset(patience)}})}
	o.Server = proxy.URL()
	var requests atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/baremetalhosts/") {
			return lab.Pass
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil && bytes.Contains(body, []byte(`"reboot.metal3.io":"{`)) && requests.Add(1) == 1 {
			return lab.TooManyRequests
		}
		return lab.Pass
	})
	y.run(o)

	y.fail("metal-2")
	e := y.ended("metal-2")

	require.Equal(t, remediations.Recovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1", "reboot:1"}, e.Steps)
	y.told("metal-2", "RepairVerifying", "nothing was done")
	require.EqualValues(t, 2, requests.Load(), "one for each attempt")
	require.Equal(t, []string{"metal-2"}, rebooted(), "once")
	require.Empty(t, y.civo.CallsTo(civosim.Any))
	require.Eventually(t, func() bool { one := host(); return len(one.GetAnnotations()) == 0 && len(one.GetLabels()) == 0 },
		within, 100*time.Millisecond, "nothing of Drydock's is left on the host")
}
