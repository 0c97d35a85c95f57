package admission_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// TestOwnKeysAreRemovedOnlyWhereTheRightIsKnown: nobody removes Drydock's own keys while the API server does not say who has the
// verb reset.
func TestOwnKeysAreRemovedOnlyWhereTheRightIsKnown(t *testing.T) {
	old := requests.Bare()
	requests.Put(old, requests.Record(remediations.PhaseExhausted))
	after := old.DeepCopy()
	delete(after.Annotations, remediations.NodeRepairKey)
	asked := ""
	change := func(allowed bool, err error) *admission.Change {
		return &admission.Change{Old: old, New: after, User: "jane", May: func(verb string) (bool, error) { asked = verb; return allowed, err }}
	}
	v := judge(remediations.ModeEnforce, change(false, errors.New("no answer in 1s")))
	require.Equal(t, admission.ReasonRightUnknown, v.Reason)
	require.Equal(t, "reset", asked)
	for _, part := range []string{remediations.NodeRepairKey + " is not removed from node n1", "jane", `the verb "reset" on repairs.drydock.dev`, "no answer in 1s"} {
		require.Contains(t, v.Message, part)
	}
	v = judge(remediations.ModeEnforce, change(false, nil))
	require.Contains(t, v.Message, remediations.NodeRepairKey+` is not removed from node n1: jane lacks the verb "reset" on repairs.drydock.dev`)
	require.True(t, judge(remediations.ModeEnforce, change(true, nil)).Allowed, "the control")
}
