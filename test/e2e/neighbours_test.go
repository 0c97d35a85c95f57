package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/marks"
)

// TestEachMarkOfOthersHoldsTheRepair: on a real API server, every mark in the shipped list holds
// the repair of an unhealthy node, and the hold names the mark's owner. A mark from the
// configuration and a person's cordon do the same. Without the mark, the same node is rebooted
// once.
func TestEachMarkOfOthersHoldsTheRepair(t *testing.T) {
	y := newYard(t)
	own := marks.Mark{Kind: marks.Label, Key: "example.com/tier", Values: []string{"frozen"}, By: "the platform team", Means: "do not touch the node"}
	list := append(marks.Shipped(), own)
	c := config(policy(nil))
	c["limits"] = map[string]any{"concurrent": fleet, "concurrentPerZone": fleet, "concurrentPerPool": fleet, "unhealthy": "100%", "startupGrace": "0s"}
	c["holdWhen"] = map[string]any{"labels": map[string]any{own.Key: map[string]any{"value": own.Values[0], "by": own.By, "means": own.Means}}}
	name := func(i int) string { return fmt.Sprintf("node-%d", fleet-1-len(list)+i) } // the last ones
	cordoned := name(len(list))
	y.cordon(cordoned, true)
	t.Cleanup(func() {
		y.cordon(cordoned, false)
		for i, m := range list {
			y.mark(name(i), m, false)
		}
	})
	for i, m := range list {
		y.mark(name(i), m, true)
		y.fail(name(i))
	}
	y.fail(cordoned)
	y.run(lab.DrydockOptions{Config: c})

	for i, m := range list {
		says := y.held(name(i), remediations.ReasonNodeLeaving).Hold.Message
		require.Contains(t, says, m.Key)
		require.Contains(t, says, "set by "+m.By+": "+m.Means)
	}
	y.held(cordoned, remediations.ReasonCordonedByOther)
	require.Empty(t, y.civo.Done(civosim.HardReboots))

	y.cordon(cordoned, false)
	for i, m := range list {
		y.mark(name(i), m, false)
	}
	for i := range len(list) + 1 {
		e := y.ended(name(i))
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", name(i), e.Why)
		require.Equal(t, 1, y.reboots(name(i)), name(i))
	}
}

// mark sets the mark on the node as its owner does, or removes it.
func (y *yard) mark(node string, m marks.Mark, set bool) {
	y.t.Helper()
	ctx, value := context.WithoutCancel(y.t.Context()), any("")
	if m.Values != nil {
		value = m.Values[0]
	}
	if !set {
		value = nil
	}
	switch m.Kind {
	case marks.Condition:
		status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[set]
		require.NoError(y.t, y.lab.SetCondition(ctx, node, corev1.NodeConditionType(m.Key), status, "Test"))
	case marks.Taint:
		require.NoError(y.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			n, err := y.lab.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == m.Key })
			if set {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: m.Key, Effect: corev1.TaintEffectNoSchedule})
			}
			_, err = y.lab.Client().CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			return err
		}))
	case marks.Label, marks.Annotation:
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{string(m.Kind): map[string]any{m.Key: value}}})
		require.NoError(y.t, err)
		_, err = y.lab.Client().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{})
		require.NoError(y.t, err)
	}
}

// selectors are the label selectors on the page about neighbours, and whether each selects a node
// under repair.
var selectors = map[string]bool{
	"drydock.dev/phase in (Acting, Verifying)": true, "drydock.dev/phase=Exhausted": false, "!drydock.dev/phase": false,
	"drydock.dev/phase notin (Acting, Verifying, Exhausted)": false,
}

// announced are the annotations that ask cluster-autoscaler and Karpenter to leave the node alone.
func announced(n *corev1.Node) []string {
	var out []string
	for _, key := range slices.Concat(announce.Annotations["cluster-autoscaler"], announce.Annotations["karpenter"]) {
		if n.Annotations[key] == announce.Value {
			out = append(out, key)
		}
	}
	return out
}

// selects asks the API server which nodes each selector of the page finds.
func (y *yard) selects(underRepair string) {
	y.t.Helper()
	t := y.t
	page, err := os.ReadFile("../../docs/operate/other-systems.md")
	require.NoError(t, err)
	written := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:-l|nodeSelector:) '([^']+)'`).FindAllStringSubmatch(string(page), -1) {
		wants, known := selectors[m[1]]
		require.True(t, known, m[1])
		written[m[1]] = wants
		found, err := y.lab.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: m[1]})
		require.NoError(t, err)
		is := slices.ContainsFunc(found.Items, func(n corev1.Node) bool { return n.Name == underRepair })
		require.Equal(t, wants, is, m[1])
	}
	require.Equal(t, selectors, written)
}
