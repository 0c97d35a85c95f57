package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestWhatARepairTriedCountsForThePlanOfItsOwnPolicyOnly: steps that a repair has left out can
// still be carried out by another policy, even if its plan has the same step at the same index.
func TestWhatARepairTriedCountsForThePlanOfItsOwnPolicyOnly(t *testing.T) {
	reboot := StepRef{Name: "reboot", Attempt: 1}
	plan := []Step{{Name: "reboot", Attempts: 1}}
	own, other := &Policy{Name: "node-not-ready", Plan: plan}, &Policy{Name: "node-disk-pressure", Plan: plan}
	s := &lifecycle.State{Config: &Config{Provided: map[string]bool{"reboot": true}}, Node: scene.Bare("n1")}
	for name, r := range map[string]*Record{
		"the repair passed the step over":     {Policy: own.Name, Passed: []Passed{{Name: "reboot"}}},
		"an earlier repair has done the step": {Policy: own.Name, After: &After{Step: reboot}},
	} {
		require.False(t, s.Doable(own, r, reboot), name)
		require.True(t, s.Doable(other, r, reboot), name)
		step, ok := s.FirstStep(other, r)
		require.True(t, ok, name)
		require.Equal(t, reboot, step, name)
	}
}
