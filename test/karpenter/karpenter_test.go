package karpenter

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/owners"
)

// A NodePool that makes Nodes where pods need them, as most do: the evicted pod is why the new one comes.
func TestANodeClaimIsReplacedAndItsPodRunsAgain(t *testing.T) {
	newBusyEnv(t, "dynamic").ReplacedAndItsPodRunsAgain("dynamic")
}

// The plan of whoever asks by hand begins with a drain, which is passed over: Karpenter drains by itself. The Node is Ready, which
// Karpenter's provider for tests asks of one that it drains.
func TestKarpenterAloneDrainsANodeThatAPersonHasReplaced(t *testing.T) {
	e := newBusyEnv(t, "asked")
	e.Run(lab.DrydockOptions{}, owners.Step(owners.Proven))
	old := e.Node(e.Nodes[0])
	object := e.Object(old.Name)
	e.EndEvicted("asked", old.Name)

	_, err := e.Lab.Client().CoreV1().Nodes().Patch(t.Context(), old.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"remediation/replace"}}}`, remediations.RequestKey), metav1.PatchOptions{})
	require.NoError(t, err)
	entry, fresh := e.Ended()

	require.Equal(t, remediations.Recovered, entry.Outcome, entry.Why)
	require.Equal(t, []string{"replace:1"}, entry.Steps)
	e.RequireReplaced(old, fresh, object, "")
	e.Bind("asked", fresh.Name)
	evictions, err := e.Lab.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Evicted"})
	require.NoError(t, err)
	require.NotEmpty(t, evictions.Items, "Karpenter evicts the pod")
}

func TestAFaultLeavesOneRequest(t *testing.T) {
	owners.AFaultLeavesOneRequest(t, func(t *testing.T, name string) *owners.Env { return newEnv(t, name, 2) })
}

// What Karpenter itself would respect, and a deletion by hand would not: each is named, and nothing is deleted. Without it the same
// NodeClaim is.
func TestWhatKarpenterRespectsIsHeld(t *testing.T) {
	e := newEnv(t, "held", 1)
	old := e.Node(e.Nodes[0])
	disrupt := func(annotation, budget string) {
		_, err := e.Lab.Client().CoreV1().Nodes().Patch(t.Context(), old.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":%s}}}`, annotation), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = karpenter.Dynamic.Resource(lab.NodePools).Patch(t.Context(), "held", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"disruption":{"budgets":[{"nodes":%q}]}}}`, budget), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	says := func(parts ...string) func(string) bool {
		return func(message string) bool {
			for _, part := range parts {
				if !strings.Contains(message, part) {
					return false
				}
			}
			return true
		}
	}
	disrupt(`"true"`, "0")
	_, proxy := e.Behind(owners.Step(owners.Proven))
	var requests atomic.Int32
	proxy.Before(func(r *http.Request) lab.Verdict {
		if e.Requests(r) {
			requests.Add(1)
		}
		return lab.Pass
	})

	e.Fail(old.Name)
	e.Held(old.Name, says("karpenter.sh/do-not-disrupt"))
	disrupt("null", "0")
	e.Held(old.Name, func(message string) bool {
		return says("NodePool held allows no disruption now (a budget of 0)")(message) && !says("disrupted")(message)
	})
	require.Empty(t, e.Seen())
	require.Zero(t, requests.Load())

	disrupt("null", "100%")
	entry, _ := e.Ended()
	require.Equal(t, remediations.Recovered, entry.Outcome, entry.Why)
	require.EqualValues(t, 1, requests.Load())
	require.Equal(t, map[string][]string{string(old.OwnerReferences[0].UID): {"deleted"}}, e.Seen())
}
