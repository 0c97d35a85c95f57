package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/test/admission/requests"
)

// TestADryRunNamesThePolicyThatDeniesDrydock: dry runs change nothing. The denial by another
// Drydock's policy does not count as a fault of the Nodes. The control is the Drydock that the
// policy belongs to. A Node whose annotations are full refuses only its own writes.
func TestADryRunNamesThePolicyThatDeniesDrydock(t *testing.T) {
	l := lab.Shared(t)
	installPolicy(t, l, "enforce")
	await(t, "the policy", func() bool { return forged(t, l) == "policy" })
	const crowded, roomy = "write-path-full", "write-path"
	nodes := []*corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: crowded, Annotations: map[string]string{}}}, {ObjectMeta: metav1.ObjectMeta{Name: roomy}},
	}
	const piece = 32 << 10
	for i := range 8 {
		key := fmt.Sprint("example.com/", i)
		nodes[0].Annotations[key] = strings.Repeat("x", piece-len(key))
	}
	for i, n := range nodes {
		made, err := l.Client().CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
		nodes[i] = made
		t.Cleanup(func() {
			_ = l.Client().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), n.Name, metav1.DeleteOptions{})
		})
	}
	enforcing := &remediations.Config{Policies: []*remediations.Policy{{
		Kind: remediations.KindNode, Mode: remediations.ModeEnforce, CordonExhausted: true, Plan: []remediations.Step{{Name: "replace"}},
	}}, Registry: remediations.Shipped()}
	known := func(by requests.User, of ...*corev1.Node) (denied string, limited []string) {
		w := kube.NewWritePath(as(t, l, by), func(context.Context) ([]*corev1.Node, error) { return of, nil }, enforcing, func(int) int { return 0 }, clock.RealClock{}, logr.Discard())
		w.Try(t.Context())
		return w.Known().Denied, w.Known().Limited
	}
	denied, _ := known(requests.Person, nodes...)
	require.Contains(t, denied, "ValidatingAdmissionPolicy 'drydock' with binding 'drydock' denied request")
	require.Contains(t, denied, "(dry run on "+roomy+")", "a Node that is full is not the cluster")

	denied, limited := known(requests.Drydock, nodes...)
	require.Empty(t, denied, "the control")
	require.Empty(t, limited)
	denied, _ = known(requests.Drydock, nodes[0])
	require.Empty(t, denied, "a Node that is full is not the cluster")
	key := remediations.AlertPrefix + "dry-run"
	err := kube.WriteAnnotations(as(t, l, requests.Drydock))(t.Context(), crowded, nodes[0].UID, map[string]*string{key: &key})
	require.True(t, kube.Full(err), "%v", err)

	for _, n := range nodes {
		now, err := l.Client().CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NotContains(t, now.Annotations, key)
		require.False(t, now.Spec.Unschedulable)
		for _, taint := range now.Spec.Taints {
			require.NotEqual(t, remediations.OutOfServiceTaint, taint.Key)
		}
		require.NotContains(t, now.Labels, remediations.PhaseLabel)
	}
}
