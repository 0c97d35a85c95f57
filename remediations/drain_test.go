package remediations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
)

// TestPodsAreGivenUpOnlyWhereThePolicySaysSo, and only after the drain had its time.
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
