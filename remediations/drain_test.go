package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestPodsAreGivenUpOnlyWhereThePolicySaysSo: the plan continues with pods left on the node only if
// the policy has `onTimeout: continue`, and only after the drain.
func TestPodsAreGivenUpOnlyWhereThePolicySaysSo(t *testing.T) {
	drained, replaced := Attempt{Name: "drain", Number: 1}, Attempt{Name: "replace", Number: 1}
	gives := func(onTimeout bool, index int, done ...Attempt) bool {
		p := &Policy{Plan: []Step{{Name: "drain", ContinueOnTimeout: onTimeout}, {Name: "replace"}}}
		return p.GivesUpPods(&Record{Step: StepRef{Index: index, Name: "replace", Attempt: 1}, Done: done})
	}
	require.True(t, gives(true, 1, drained, replaced))
	require.True(t, gives(true, 7, drained), "the plan is shorter by now")
	require.False(t, gives(false, 1, drained, replaced), "onTimeout: stop")
	require.False(t, gives(true, 1, replaced), "the drain was passed over")
	require.False(t, gives(true, 0, drained), "the drain comes later")
}

// TestAnApprovalIsOfWhatADrainDoesWithPodsWithoutAController: an approval of a plan that refuses
// such pods does not approve a plan that evicts them. The digest leaves out the default value, so
// that approvals from before an upgrade still count.
func TestAnApprovalIsOfWhatADrainDoesWithPodsWithoutAController(t *testing.T) {
	digest := func(w WithoutController) string {
		p := &Policy{Approval: true, Plan: []Step{{Name: "drain", Timeout: time.Minute, Attempts: 1, WithoutController: w}}}
		return p.Approved(scene.Bare("n1"))
	}
	require.NotEqual(t, digest(WithoutControllerRefuse), digest(WithoutControllerEvict))
	require.NotEqual(t, digest(WithoutControllerWait), digest(WithoutControllerEvict))
	require.NotContains(t, EncodeJSON([]Step{{Name: "drain"}}), "WithoutController")
}
