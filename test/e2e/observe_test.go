package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestObservedRepairsAreInTheHistory: two nodes are unhealthy, and the limit allows one repair. The
// second node is judged when the first one's wait has ended, and becomes healthy by itself. Then
// the policy enforces. The observed repairs hold neither of the real ones, whatever the cooldown
// is.
func TestObservedRepairsAreInTheHistory(t *testing.T) {
	y := newYard(t)
	as := func(mode, wait string) map[string]any {
		c := config(policy(map[string]any{"cooldown": "1h", "plan": []any{map[string]any{"step": "reboot", "wait": wait, "attempts": 2}}}))
		c["mode"], c["limits"] = mode, map[string]any{"concurrent": 1, "startupGrace": "0s"}
		return c
	}
	d := y.run(lab.DrydockOptions{Config: as("observe", soon)})

	y.fail("node-5")
	y.held("node-5", remediations.ReasonObserving)
	y.fail("node-6")
	first := y.ended("node-5")
	require.Equal(t, remediations.OutcomeObserved, first.Outcome)
	require.Empty(t, first.Steps)
	require.Equal(t, "reboot:1", first.Would.Step.String())
	require.Zero(t, first.Would.WellAt, first.Why)
	require.Contains(t, first.Why, "the alert still fires")
	y.awaitEvent("node-5", "RepairObserved", "reboot:1 would have been issued at")

	second := y.held("node-6", remediations.ReasonObserving)
	require.False(t, second.Hold.Since.Before(first.Ended), "it waited for the place: %s, %s", second.Hold.Since, first.Ended)
	require.NoError(t, y.lab.Heal(t.Context(), "node-6", ""))
	well := y.ended("node-6")
	require.Equal(t, remediations.OutcomeObserved, well.Outcome)
	require.True(t, well.Would.Unnecessary(), well.Why)
	require.Contains(t, well.Why, "reboot:1 would have been unnecessary")
	y.await("node-5", "nothing but its alert and its history", func(n *corev1.Node) bool { return remediations.ReadJournal(n).Record == nil })
	require.Empty(t, y.civo.Calls(), "the provider was not even asked")

	d.Kill()
	y.run(lab.DrydockOptions{Config: as("enforce", patience), Name: "drydock-enforcing"})
	recovered := func(e remediations.Entry) bool { return e.Outcome == remediations.OutcomeRecovered }
	require.Equal(t, []string{"reboot:1"}, y.entry("node-5", recovered).Steps.Texts())
	y.fail("node-6")
	require.Equal(t, []string{"reboot:1"}, y.entry("node-6", recovered).Steps.Texts())
}
