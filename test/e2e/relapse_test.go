package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// A fault that comes back soon was not cured. The plan continues where it ended, and finally waits
// for a person. Without a relapse window, each fault begins with the plan's first step.
func TestAFaultThatComesBackContinuesThePlan(t *testing.T) {
	y := newYard(t)
	const node, control = "node-56", "node-57"
	forgets := policy(map[string]any{"name": "forgets", "nodeSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelHostname: control}}})
	y.run(lab.DrydockOptions{Config: several(map[string]any{"policies": []any{forgets, policy(map[string]any{"relapseWindow": "1h"})}})})

	first := y.failsAndRecovers(node, 1)
	second := y.failsAndRecovers(node, 2)
	require.Equal(t, []string{"reboot:1"}, first.Steps.Texts())
	require.Equal(t, []string{"reboot:2"}, second.Steps.Texts())
	require.Equal(t, first.ID, second.After)
	y.fail(node)
	last := y.entry(node, func(e remediations.Entry) bool { return e.Outcome == remediations.OutcomeExhausted })
	require.Equal(t, second.ID, last.After)
	require.Equal(t, 2, y.reboots(node), "nothing is left of the plan")
	require.True(t, y.node(node).Spec.Unschedulable, "it is left to a person")
	for _, e := range remediations.DecodeHistory(y.node(node).Annotations[remediations.HistoryKey])[1:] {
		require.Equal(t, remediations.OutcomeRelapsed, e.Outcome, "what was no cure is not called one: %s", e.ID)
	}

	for i := range 2 {
		e := y.failsAndRecovers(control, i+1)
		require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
		require.Empty(t, e.After)
	}
}

// failsAndRecovers makes the node fail, and returns its repair. The repair must end well, and be
// one of so many.
func (y *yard) failsAndRecovers(node string, repairs int) remediations.Entry {
	y.t.Helper()
	y.fail(node)
	var newest remediations.Entry
	y.await(node, "another repair to end", func(n *corev1.Node) bool {
		past := remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])
		if len(past) < repairs {
			return false
		}
		newest = past[0]
		return remediations.ReadJournal(n).Record == nil
	})
	require.Equal(y.t, remediations.OutcomeRecovered, newest.Outcome, newest.Why)
	return newest
}
