package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestAConditionThatOthersSetIsRepairedAndProven: the shipped rules make alerts of the conditions
// that node-problem-detector and the EKS node monitoring agent set on Nodes. The shipped policies
// take their steps. A node with the other status of the same condition is left alone. The repair
// has recovered the node when the program that set the condition clears it.
func TestAConditionThatOthersSetIsRepairedAndProven(t *testing.T) {
	type said struct {
		node      string
		condition corev1.NodeConditionType
		ill, well corev1.ConditionStatus
	}
	ill := map[string]said{
		"node-kernel-deadlock":     {"node-78", "KernelDeadlock", corev1.ConditionTrue, corev1.ConditionFalse},
		"node-subsystem-not-ready": {"node-77", "NetworkingReady", corev1.ConditionFalse, corev1.ConditionTrue},
	}
	well := []said{{node: "node-76", condition: "KernelDeadlock", ill: corev1.ConditionFalse}, {node: "node-75", condition: "NetworkingReady", ill: corev1.ConditionTrue}}
	y := newYard(t)
	set := func(s said, status corev1.ConditionStatus) {
		require.NoError(t, y.lab.SetCondition(t.Context(), s.node, s.condition, status, "Test"))
	}
	var policies []any
	for name := range ill {
		policies = append(policies, map[string]any{"name": name, "mode": "enforce", "for": "0s", "proofFor": "2s", "cooldown": "0s", "relapseWindow": "0s"})
	}
	y.run(lab.DrydockOptions{Config: map[string]any{"policies": policies, "limits": map[string]any{"concurrent": 2, "concurrentPerPool": 2, "startupGrace": "0s"}}})

	for _, s := range ill {
		set(s, s.ill)
	}
	for _, s := range well {
		set(s, s.ill)
	}
	for policy, s := range ill {
		require.Eventually(t, func() bool { return y.reboots(s.node) == 1 }, lab.Patience, 100*time.Millisecond, "%s is rebooted", s.node)
		require.Equal(t, policy, y.record(s.node, "the repair", verifying).Policy)
		set(s, s.well)
		e := y.ended(s.node)
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
		require.Equal(t, "reboot:1", e.Steps[len(e.Steps)-1].String())
		require.Equal(t, 1, y.reboots(s.node))
	}
	for _, s := range well {
		require.Empty(t, drydocks(y.node(s.node)))
	}
}
