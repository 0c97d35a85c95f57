package announce_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestConditionsDue has a case for each state of a repair and each state of the Node's conditions.
func TestConditionsDue(t *testing.T) {
	const maintenance, drains = corev1.NodeMaintenanceInProgress, corev1.NodeDrainInProgress
	type types = []corev1.NodeConditionType
	on := func(of corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: of, Status: status, Reason: reason}
	}
	own := func(of corev1.NodeConditionType) corev1.NodeCondition {
		return on(of, corev1.ConditionTrue, announce.Reason)
	}
	record := func(phase Phase, step string) *Record {
		return &Record{ID: "abc123", Policy: "p", Phase: phase, Step: StepRef{Name: step, Attempt: 1}, Intent: &Intent{ID: "abc123-0-1", At: scene.Noon}}
	}
	for name, c := range map[string]struct {
		record      *Record
		there       []corev1.NodeCondition
		set, remove types
	}{
		"no repair":                                {},
		"held before the first intent":             {record: &Record{Phase: PhasePending}},
		"a reboot":                                 {record: record(PhaseActing, "reboot"), set: types{maintenance}},
		"a reboot, and it says so":                 {record: record(PhaseActing, "reboot"), there: []corev1.NodeCondition{own(maintenance)}},
		"between two attempts":                     {record: record(PhasePending, "reboot"), set: types{maintenance}},
		"a drain":                                  {record: record(PhaseActing, "drain"), set: types{drains, maintenance}},
		"a drain that is over":                     {record: record(PhaseVerifying, "drain"), there: []corev1.NodeCondition{own(drains), own(maintenance)}, remove: types{drains}},
		"it ran out of steps":                      {record: record(PhaseExhausted, "reboot"), there: []corev1.NodeCondition{own(maintenance)}, remove: types{maintenance}},
		"it is over":                               {there: []corev1.NodeCondition{own(drains), own(maintenance)}, remove: types{drains, maintenance}},
		"it is over, and others are at work":       {there: []corev1.NodeCondition{on(maintenance, corev1.ConditionTrue, "AdminRequested")}},
		"others were at work":                      {record: record(PhaseActing, "reboot"), there: []corev1.NodeCondition{on(maintenance, corev1.ConditionFalse, "AdminRequested")}},
		"others do not know":                       {record: record(PhaseActing, "drain"), there: []corev1.NodeCondition{on(maintenance, corev1.ConditionUnknown, "")}, set: types{drains}},
		"others made it theirs":                    {there: []corev1.NodeCondition{on(maintenance, corev1.ConditionFalse, announce.Reason)}},
		"a condition of which Drydock sets none":   {there: []corev1.NodeCondition{on(corev1.NodeDrained, corev1.ConditionTrue, announce.Reason)}},
		"one that says nothing of a node's repair": {there: []corev1.NodeCondition{on(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady")}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{Status: corev1.NodeStatus{Conditions: c.there}}
			set, remove := Journal{Record: c.record}.ConditionsDue(n)
			var sets types
			for _, s := range set {
				sets = append(sets, s.Type)
				require.True(t, announce.Own(s))
				require.Equal(t, "Drydock repairs this node: repair abc123 by policy p, set at attempt abc123-0-1 ("+c.record.Step.String()+")", s.Message)
			}
			require.Equal(t, c.set, sets)
			require.Equal(t, c.remove, remove)
			set, remove = Journal{Record: c.record, Malformed: errors.New("nobody can read it"), Unreadable: []string{NodeRepairKey}}.ConditionsDue(n)
			require.Empty(t, set)
			require.Empty(t, remove)
		})
	}
}

// TestOnlyAConditionOfOthersHolds: a maintenance condition holds repairs only if its reason is not
// Drydock's.
func TestOnlyAConditionOfOthersHolds(t *testing.T) {
	for _, of := range announce.Conditions {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: of, Status: corev1.ConditionTrue, Reason: announce.Reason}}}}
		require.Empty(t, marks.List(nil).Leaving(n, Journal{}, scene.Noon), of)
		n.Status.Conditions[0].Reason = "AdminRequested"
		require.Contains(t, marks.List(nil).Leaving(n, Journal{}, scene.Noon), "condition "+string(of)+"=True set by ", of)
	}
}
