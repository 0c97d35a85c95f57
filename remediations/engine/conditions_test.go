package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
)

// announcedOn returns which conditions Drydock has set on the node.
func announcedOn(n *corev1.Node) (own []corev1.NodeConditionType) {
	for _, c := range n.Status.Conditions {
		if announce.Own(c) {
			own = append(own, c.Type)
		}
	}
	return own
}

// showing is the whole plan, with a drain, of a Drydock that announces conditions.
func showing() *remediations.Config {
	c := wholeConfig()
	shows(c)
	return c
}

// TestTheConditionsFollowTheRecord: MaintenanceInProgress is set with the first intent and before
// the call. DrainInProgress is set while Drydock drains. Neither holds Drydock. Both are removed
// when the repair has ended or is exhausted, also if the API server refused the first writes.
func TestTheConditionsFollowTheRecord(t *testing.T) {
	maintenance := []corev1.NodeConditionType{corev1.NodeMaintenanceInProgress}
	for name, fault := range map[string]string{"at once": "", "after a conflict": "conflict", "after an answer that was lost": "lost"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, showing(), 6, func(t *testing.T, w *world) {
				during := func(phase remediations.Phase, step string) []corev1.NodeConditionType {
					require.True(t, w.until(time.Hour, func() bool {
						r := w.record("n0")
						return r != nil && r.Phase == phase && r.Step.Name == step
					}), "%s of %s", phase, step)
					if fault != "" {
						w.pass(6 * time.Second) // the leader retries every five seconds
					}
					return announcedOn(w.nodeOf("n0"))
				}
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.mood.before = 2 * time.Second
					fullOf(60)(w)
					if fault != "" {
						w.faults["show"] = []string{fault}
					}
					w.ail("n0", 9)
					w.post("n0", remediations.StatusFiring)
				})
				if fault == "" {
					require.Equal(t, maintenance, during(remediations.PhaseActing, "reboot"))
					require.Zero(t, w.callCount(), "before the call")
				}
				require.Equal(t, maintenance, during(remediations.PhaseVerifying, "reboot"))
				w.do(func() {
					if fault != "" {
						w.faults["show"] = []string{fault}
					}
				})
				require.ElementsMatch(t, announce.Conditions, during(remediations.PhaseActing, "drain"))
				require.Equal(t, maintenance, during(remediations.PhaseVerifying, "replace"))
				w.pass(2 * time.Hour)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				for node := range w.nodes {
					require.Empty(t, announcedOn(w.nodeOf(node)), node)
				}
			})
		})
	}
	t.Run("the plan runs out", func(t *testing.T) {
		c := showing()
		c.Policies[0].Plan = c.Policies[0].Plan[:1]
		inWorld(t, c, 6, func(t *testing.T, w *world) {
			exhausted(t, w)
			require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
			require.Empty(t, announcedOn(w.nodeOf("n0")))
		})
	})
}

// TestForeignConditionIsKept: a condition that another system set to True holds the repair, as
// Drydock's own does not. False does not hold it. In both cases it stays unchanged, during the
// repair and after it. The other condition is announced all the same.
func TestForeignConditionIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		theirs corev1.NodeCondition
		held   bool
	}{
		"at work":   {others(corev1.NodeDrainInProgress, corev1.ConditionTrue), true},
		"no longer": {others(corev1.NodeDrainInProgress, corev1.ConditionFalse), false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, showing(), 6, func(t *testing.T, w *world) {
				w.start()
				w.pass(16 * time.Second)
				w.do(func() {
					w.condition("n0", c.theirs)
					w.ail("n0", 1)
					w.post("n0", remediations.StatusFiring)
				})
				w.pass(2 * time.Minute)
				if c.held {
					require.Equal(t, remediations.ReasonNodeLeaving, w.recordOf("n0").Hold.Reason)
					require.Empty(t, announcedOn(w.nodeOf("n0")))
				}
				w.pass(20 * time.Minute)
				require.Equal(t, &c.theirs, conditionOf(w.nodeOf("n0"), c.theirs.Type))
				require.Equal(t, c.held, len(w.outcomes()) == 0)
				require.Equal(t, !c.held, w.callCount() == 1)
			})
		})
	}
}
