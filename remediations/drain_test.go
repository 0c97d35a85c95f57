package remediations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
)

// TestPodsAreGivenUpOnlyWhereThePolicySaysSo, and only after the drain had its time.
func TestPodsAreGivenUpOnlyWhereThePolicySaysSo(t *testing.T) {
	gives := func(onTimeout bool, index int, done ...string) bool {
		p := &Policy{Plan: []Step{{Name: "drain", ContinueOnTimeout: onTimeout}, {Name: "replace"}}}
		return p.GivesUpPods(&Record{Step: StepRef{Index: index, Name: "replace", Attempt: 1}, Done: done})
	}
	require.True(t, gives(true, 1, "drain:1", "replace:1"))
	require.True(t, gives(true, 7, "drain:1"), "the plan is shorter by now")
	require.False(t, gives(false, 1, "drain:1", "replace:1"), "onTimeout: stop")
	require.False(t, gives(true, 1, "replace:1"), "the drain was passed over")
	require.False(t, gives(true, 0, "drain:1"), "the drain comes later")
}
