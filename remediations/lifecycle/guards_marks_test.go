package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

const kuredReboots = "weave.works/kured-reboot-in-progress"

// TestAForgottenMarkOfAPlannedRebootHoldsForAnHour: kured's mark has the time when its reboot
// began. A node that has not come back after an hour needs a repair, so the mark no longer holds
// it. A younger mark is the control.
func TestAForgottenMarkOfAPlannedRebootHoldsForAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		age      time.Duration
		cordoned bool
		reason   Reason
		until    time.Time
		says     string
	}{
		"59 minutes": {
			age: 59 * time.Minute, cordoned: true, reason: ReasonNodeLeaving, until: scene.Noon.Add(time.Minute),
			says: "annotation weave.works/kured-reboot-in-progress set by kured: kured reboots the node (since 2026-03-04T11:01:00Z, believedFor 1h)",
		},
		"2 hours": {age: 2*time.Hour + 5*time.Minute},
		"2 hours, and kured's cordon still stands": {
			age: 2 * time.Hour, cordoned: true, reason: ReasonCordonedByOther,
			says: "the node is cordoned, and not by this repair; a person may be working on it. Uncordon the node, or set repairCordoned in policy p; " +
				"annotation weave.works/kured-reboot-in-progress set by kured: kured reboots the node (since 2026-03-04T10:00:00Z, longer than believedFor 1h; the mark was not removed)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			n.CreationTimestamp.Time = scene.Noon.Add(-24 * time.Hour)
			n.Annotations[kuredReboots] = scene.Noon.Add(-c.age).Format(time.RFC3339)
			n.Spec.Unschedulable = c.cordoned
			reason, f := marked(n).HeldBy([]Reason{ReasonNodeLeaving, ReasonCordonedByOther})
			require.Equal(t, c.reason, reason)
			if c.reason != "" {
				require.Equal(t, c.says, f.Message)
				require.Equal(t, c.until, f.Until)
			}
		})
	}
}

func marked(n *corev1.Node) *lifecycle.Candidate {
	return &lifecycle.Candidate{State: &lifecycle.State{Config: &Config{}, Node: n, Journal: ReadJournal(n)}, Now: scene.Noon, Policy: &Policy{Name: "p"}}
}
