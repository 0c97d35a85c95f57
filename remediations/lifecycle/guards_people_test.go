package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// TestACancelHoldsWhileTheNodeShowsTheSameFault: the alert has a later start than the cancel. It
// counts as the same alert only if the node's condition has shown the fault since before the
// cancel.
func TestACancelHoldsWhileTheNodeShowsTheSameFault(t *testing.T) {
	by := CancelledRepair{ID: "r0", At: callTime.Add(-30 * time.Minute)}
	for name, c := range map[string]struct {
		started time.Duration // how long ago
		ready   corev1.ConditionStatus
		since   time.Duration
		acted   bool
		held    bool
		same    bool // the message names the fault
	}{
		"a later start, and not Ready since before": {time.Minute, corev1.ConditionFalse, time.Hour, false, true, true},
		"a later start, and not Ready since":        {time.Minute, corev1.ConditionFalse, time.Minute, false, false, false},
		"a later start, and Ready":                  {time.Minute, corev1.ConditionTrue, time.Hour, false, false, false},
		"the same start":                            {time.Hour, corev1.ConditionFalse, time.Hour, false, true, false},
		"the repair has issued a step":              {time.Hour, corev1.ConditionFalse, time.Hour, true, false, false},
	} {
		asked := aCandidate()
		asked.Policy.Witness = &signs.Witness{Signs: []signs.Sign{{Kind: signs.NotReady}}}
		asked.Verdict.StartsAt, asked.Alert.Cancelled = callTime.Add(-c.started), &by
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: c.ready}
		ready.LastTransitionTime.Time = callTime.Add(-c.since)
		asked.Node.Status.Conditions = []corev1.NodeCondition{ready}
		if c.acted {
			asked.Repair = "r1"
		}
		_, f := asked.HeldBy([]Reason{ReasonPaused})
		require.Equal(t, c.held, f != nil, name)
		if f != nil {
			const same = "the node shows the same fault: Ready is False"
			require.Contains(t, f.Message, "repair r0 of this alert was cancelled", name)
			if c.same {
				require.Contains(t, f.Message, same, name)
			} else {
				require.NotContains(t, f.Message, same, name)
			}
		}
	}
}

// TestAPersonApprovesOnlyTheRepairOnRecord: an approval counts if its value is the ID of the
// record.
func TestAPersonApprovesOnlyTheRepairOnRecord(t *testing.T) {
	for name, c := range map[string]struct {
		record   *Record
		approval string
		held     bool
	}{
		"approved":                      {&Record{ID: "r1"}, "r1", false},
		"not approved":                  {&Record{ID: "r1"}, "", true},
		"another repair is approved":    {&Record{ID: "r1"}, "r0", true},
		"another repair is on record":   {&Record{ID: "r0"}, "r1", true},
		"no repair is on record so far": {nil, "r1", true},
	} {
		asked := aCandidate()
		asked.Policy.Approval, asked.Journal.Record = true, c.record
		if c.approval != "" {
			asked.Node.Annotations[ApproveKey] = c.approval
		}
		require.Equal(t, c.held, asked.isHeldBy(ReasonAwaitingApproval), name)
	}
}
