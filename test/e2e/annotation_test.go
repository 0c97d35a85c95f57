package e2e

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

const rebootOfDeckhouse = "update.node.deckhouse.io/reboot"

// onDeckhouse creates a Node, and simulates on it the script of Deckhouse according to its
// contract: the script removes the annotation and reboots the machine. rebooted returns the
// requests that it has carried out.
func (y *yard) onDeckhouse(node string) (rebooted func() []string) {
	y.t.Helper()
	ctx := context.WithoutCancel(y.t.Context())
	require.NoError(y.t, y.lab.AddNode(ctx, lab.NodeSpec{Name: node, ProviderID: "static://" + node}))
	y.t.Cleanup(func() {
		require.NoError(y.t, y.lab.Client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}))
	})
	var mu sync.Mutex
	var done []string
	nodes := y.lab.Client().CoreV1().Nodes()
	seen, err := nodes.Watch(y.t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()})
	require.NoError(y.t, err)
	go func() {
		for event := range seen.ResultChan() {
			n, ok := event.Object.(*corev1.Node)
			if !ok || n.Annotations[rebootOfDeckhouse] == "" {
				continue
			}
			attempt := n.Annotations["drydock.dev/attempt"]
			remove := `{"metadata":{"resourceVersion":"` + n.ResourceVersion + `","annotations":{"` + rebootOfDeckhouse + `":null}}}`
			if _, err := nodes.Patch(y.t.Context(), node, types.MergePatchType, []byte(remove), metav1.PatchOptions{}); err != nil {
				continue // the Node changed meanwhile, and the next event tries again
			}
			y.lab.Off(node)
			if err := y.lab.On(y.t.Context(), node, uuid.NewString(), true); err != nil {
				continue
			}
			mu.Lock()
			done = append(done, attempt)
			mu.Unlock()
		}
	}()
	return func() []string { mu.Lock(); defer mu.Unlock(); return append([]string{}, done...) }
}

// byDeckhouse returns a configuration that lets Deckhouse reboot such nodes, and Civo all others.
func byDeckhouse() lab.DrydockOptions {
	o := byMetal3()
	o.Config["providers"] = map[string]any{"annotation": map[string]any{"preset": "deckhouse"}}
	return o
}

func (y *yard) nothingAsked(node string) {
	y.t.Helper()
	require.Eventually(y.t, func() bool {
		n, err := y.lab.Client().CoreV1().Nodes().Get(context.WithoutCancel(y.t.Context()), node, metav1.GetOptions{})
		return err == nil && n.Annotations[rebootOfDeckhouse] == "" && n.Annotations["drydock.dev/attempt"] == ""
	}, lab.Patience, 100*time.Millisecond, "no request of Drydock's is left on the Node")
}

// The whole chain on the Node itself, where Drydock also writes its record: alert, witness, intent,
// the annotation, a new boot ID, and nothing left behind.
func TestAnAnnotationOnTheNodeRebootsTheMachine(t *testing.T) {
	y := newYard(t)
	rebooted := y.onDeckhouse("anno-0")
	y.run(byDeckhouse())
	before := y.node("anno-0").Status.NodeInfo.BootID

	y.fail("anno-0")

	e := y.ended("anno-0")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.NotEqual(t, before, y.node("anno-0").Status.NodeInfo.BootID)
	require.Len(t, rebooted(), 1)
	require.Contains(t, rebooted()[0], e.ID)
	require.Empty(t, y.civo.CallsTo(civosim.Any))
	y.nothingAsked("anno-0")
}

// Whatever happens to the request on the Node, the machine is rebooted once, and nothing is left
// behind.
func TestAFaultLeavesOneAnnotationOnTheNode(t *testing.T) {
	aFaultLeavesOneRequest(t, func(y *yard, name string) requested {
		node := "anno-" + name
		rebooted := y.onDeckhouse(node)
		return requested{
			node: node, config: byDeckhouse(), step: reset, rebooted: rebooted,
			asks: func(in *http.Request, body []byte) bool {
				return in.Method == http.MethodPatch && strings.HasSuffix(in.URL.Path, "/nodes/"+node) && bytes.Contains(body, []byte(`"`+rebootOfDeckhouse+`":"`))
			},
			ended: func(remediations.Entry, int) {
				y.nothingAsked(node)
				require.Len(y.t, rebooted(), 1, "once")
			},
		}
	})
}
