package coverage_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/coverage"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestARoleOfTheControlPlaneThatIsNotKnownIsNamed: UnknownRoles reports a role only if Nodes have
// its taint, because workers may have labels of roles, too. Nodes with a known role are the
// control.
func TestARoleOfTheControlPlaneThatIsNotKnownIsNamed(t *testing.T) {
	node := func(name, label, taint string) *corev1.Node {
		n := scene.Bare(name)
		n.Labels = map[string]string{"node-role.kubernetes.io/" + label: ""}
		if taint != "" {
			n.Spec.Taints = []corev1.Taint{
				{Key: "node-role.kubernetes.io/" + taint, Effect: corev1.TaintEffectNoSchedule}, {Key: "node-role.kubernetes.io/" + taint, Effect: corev1.TaintEffectNoExecute},
			}
		}
		return n
	}
	nodes := []*corev1.Node{
		node("m2", "manager", "manager"), node("m1", "manager", "manager"), node("w1", "worker", ""),
		node("c1", "control-plane", "control-plane"), node("e1", "etcd", "etcd"), node("c2", "master", "anything"),
	}
	nodes[2].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	require.Equal(t, []string{
		"2 Nodes have a taint of the role manager, which Drydock does not count as the control plane, so it repairs them as workers: m1, m2; if they are the control plane, add the label node-role.kubernetes.io/control-plane to them",
	}, coverage.UnknownRoles(nodes))
	require.Empty(t, coverage.UnknownRoles(nodes[2:]))
}
