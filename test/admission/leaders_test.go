package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// These are the Nodes: two of a location whose leadership moves from one to the other, one of the
// same location without a part in the move, and one of another location.
const (
	ledNode, leadsNode, memberNode, foreignNode = "n2", "n3", "n4", "n5"
)

// leads writes on the mesh's Nodes what Drydock would write for a leader's repair in that phase. An
// empty phase removes it.
func (y *yard) leads(phase remediations.Phase, more ...func(*corev1.Node)) {
	y.t.Helper()
	in := func(location string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[admission.MeshLocationKey] = location }
	}
	y.becomes(leadsNode, "", in(requests.Location))
	y.becomes(memberNode, "", in(requests.Location))
	y.becomes(foreignNode, "", in("west"))
	y.becomes(ledNode, "", append([]func(*corev1.Node){in(requests.Location), func(n *corev1.Node) {
		if phase != "" {
			requests.PutLeader(n, requests.LeaderRecord(ledNode, leadsNode, phase))
		}
	}}, more...)...)
}

// choosing are the commands that people can use to write Kilo's key of the leader.
func choosing(node string) [][]string {
	key := admission.MeshLeaderKey
	return [][]string{{"annotate", "node", node, key + "=true", "--overwrite"}, {"annotate", "node", node, key + "=", "--overwrite"}}
}

// denied waits until admission knows what was written, and returns how it denies the request. A
// replica learns of another Node's repair by its watch, so a moment later.
func (y *yard) denied(args ...string) string {
	y.t.Helper()
	out := ""
	await(y.t, "it to be denied: kubectl "+strings.Join(args, " "), func() bool {
		said, ok := y.run(append(args, "--dry-run=server")...)
		out = said
		return !ok
	})
	require.Equal(y.t, out, y.isDenied(args...))
	return out
}

// TestTheLeaderCannotBeSetByHandWhileLeadershipMoves uses the real kubectl. Until the repair has
// ended, a person can set neither the old leader, nor the new one, nor another node of the
// location.
func TestTheLeaderCannotBeSetByHandWhileLeadershipMoves(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	free := func(when string, nodes ...string) {
		for _, n := range nodes {
			for _, args := range choosing(n) {
				await(t, when+" "+n+" is free", func() bool { _, ok := y.run(append(args, "--dry-run=server")...); return ok })
				y.does(args...)
			}
			y.does("annotate", "node", n, admission.MeshLeaderKey+"-")
			require.NotContains(t, y.node(n).Annotations, admission.MeshLeaderKey, when)
		}
	}
	y.leads("")
	free("before,", ledNode, leadsNode, memberNode, foreignNode)
	y.leads(remediations.PhasePending)
	free("while it is only held,", ledNode, leadsNode, memberNode)

	for _, phase := range []remediations.Phase{remediations.PhaseActing, remediations.PhaseVerifying} {
		y.leads(phase)
		for _, n := range []string{ledNode, leadsNode, memberNode} {
			for _, args := range choosing(n) {
				out := y.denied(args...)
				for _, text := range []string{
					"admission webhook", "node " + ledNode + " is under repair " + requests.ID, "mesh-leader-degraded", "promote-leader", "is " + string(phase), admission.MeshLeaderKey,
					"kubectl annotate node " + ledNode + " drydock.dev/cancel=" + requests.ID, "kubectl annotate node " + ledNode + " drydock.dev/break-glass=",
				} {
					require.Contains(t, out, text, "%v", args)
				}
			}
			require.NotContains(t, y.node(n).Annotations, admission.MeshLeaderKey)
		}
		free("in another location,", foreignNode)
		y.does("label", "node", memberNode, "team=a", "--overwrite")
		y.does("cordon", memberNode)
		y.does("uncordon", memberNode)
	}
	require.NotZero(t, y.metric(`drydock_admission_total{reason="MeshLeader",verdict="denied"}`))

	// The key can neither be removed nor set.
	y.leads(remediations.PhaseVerifying)
	put(t, t.Context(), y.user, func() *corev1.Node {
		n := y.node(leadsNode)
		n.Annotations[admission.MeshLeaderKey] = "drydock"
		return n
	}())
	require.Contains(t, y.denied("annotate", "node", leadsNode, admission.MeshLeaderKey+"-"), requests.ID)
	require.Equal(t, "drydock", y.node(leadsNode).Annotations[admission.MeshLeaderKey])

	// Break-glass on the Node with the record stops the repair and allows changes in the location.
	// Break-glass on another Node allows changes of only that Node.
	y.does("annotate", "node", memberNode, remediations.BreakGlassKey+"=why")
	y.does("annotate", "node", memberNode, admission.MeshLeaderKey+"=")
	require.Contains(t, y.isDenied("annotate", "node", leadsNode, admission.MeshLeaderKey+"-"), requests.ID)
	y.does("annotate", "node", ledNode, remediations.BreakGlassKey+"=why")
	y.does("annotate", "node", ledNode, admission.MeshLeaderKey+"=")
	free("with break-glass,", leadsNode)

	y.leads(remediations.PhaseExhausted)
	free("when it has run out,", ledNode, leadsNode, memberNode)
	y.leads("")
	free("after,", ledNode, leadsNode, memberNode)
}

// TestObserveModeOnlyWarnsOfALeader: setting the leader by hand is allowed with a warning.
func TestObserveModeOnlyWarnsOfALeader(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "observe")
	y.leads(remediations.PhaseVerifying)
	for _, n := range []string{ledNode, leadsNode, memberNode} {
		args := choosing(n)[0]
		await(t, "a warning about "+n, func() bool {
			return strings.Contains(y.does(append(args, "--dry-run=server")...), "Warning: in enforce mode this would be denied: node "+ledNode+" is under repair "+requests.ID)
		})
		require.Contains(t, y.does(args...), "Warning: in enforce mode this would be denied")
		require.Equal(t, "true", y.node(n).Annotations[admission.MeshLeaderKey])
	}
	require.NotContains(t, y.does(choosing(foreignNode)[0]...), "Warning")
	y.leads("")
}
