package ledger_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestPolicyStopsAfterThreeExhaustedInARow(t *testing.T) {
	l := &ledger.Ledger{}
	l.Finished("p", nextRepair(), OutcomeExhausted)
	l.Finished("p", nextRepair(), OutcomeExhausted)
	l.Finished("p", nextRepair(), OutcomeSelfRecovered)
	l.Finished("p", nextRepair(), OutcomeExhausted)
	l.Finished("p", nextRepair(), OutcomeExhausted)
	require.False(t, l.Failing("p"), "another end broke the row")
	l.Finished("p", nextRepair(), OutcomeExhausted)
	require.True(t, l.Failing("p"))
	require.False(t, l.Failing("q"), "each policy for itself")
	for _, o := range []Outcome{OutcomeSelfRecovered, OutcomeSuperseded, OutcomeCancelled} {
		l.Finished("p", nextRepair(), o)
		require.True(t, l.Failing("p"), "%s says nothing for a policy that is stopped", o)
	}
	l.Finished("p", nextRepair(), OutcomeRecovered)
	require.False(t, l.Failing("p"), "one that was still under way showed that it works")

	for range 3 {
		l.Finished("p", nextRepair(), OutcomeExhausted)
		l.Finished("p", nextRepair(), OutcomeObserved) // which says nothing about the policy
	}
	l.Allow("q")
	require.True(t, l.Failing("p"))
	l.Allow("p")
	require.False(t, l.Failing("p"), "a person has looked")
}

// TestPolicyIsStoppedByItsLastEndsAlone: for any series of ends, a policy is stopped only by three
// Exhausted in a row.
func TestPolicyIsStoppedByItsLastEndsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, row := &ledger.Ledger{}, 0
		for _, o := range rapid.SliceOfN(rapid.SampledFrom(Outcomes), 0, 20).Draw(t, "ends") {
			l.Finished("p", nextRepair(), o)
			switch {
			case o == OutcomeObserved: // nothing was tried
			case o == OutcomeExhausted || o == OutcomeRelapsed:
				row++
			case o == OutcomeRecovered || row < 3:
				row = 0
			}
			require.Equal(t, row >= 3, l.Failing("p"))
		}
	})
}

// TestRebuiltLedgerKnowsWhatRanOutAndWhatBegan: deleting the ledger must not give every machine and
// policy a new start.
func TestRebuiltLedgerKnowsWhatRanOutAndWhatBegan(t *testing.T) {
	c := scene.LimitsAlone()
	c.Limits.RepairsWindow = 24 * 3600e9
	var nodes []*corev1.Node
	for _, n := range scene.Herd(3, 3) {
		r := Record{V: 1, ID: "r" + n.Name, Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhaseExhausted, Step: StepRef{Name: "reboot", Attempt: 1},
			Done: Attempts{{Name: "reboot", Number: 1}}, Began: scene.Noon, Since: scene.Noon, Intent: &Intent{ID: "r" + n.Name + "-0-1", At: scene.Noon}}
		n.Annotations[NodeRepairKey], n.Labels[PhaseLabel] = r.Encode(), string(PhaseExhausted)
		n.Annotations[HistoryKey] = EncodeJSON([]Entry{
			{ID: r.ID, Steps: r.Done, Began: scene.Noon, Ended: scene.Noon, Outcome: OutcomeExhausted},
			{ID: "gentle", Steps: Attempts{{Name: "mark-ready", Number: 1}}, Began: scene.Noon, Ended: scene.Noon, Outcome: OutcomeRecovered},
			{ID: "leader", Target: "leader", Steps: Attempts{{Name: "promote-leader", Number: 1}}, Began: scene.Noon, Ended: scene.Noon, Outcome: OutcomeRecovered},
			{ID: "old", Steps: Attempts{{Name: "reboot", Number: 1}}, Began: scene.Noon.Add(-25 * 3600e9), Ended: scene.Noon, Outcome: OutcomeRecovered},
		})
		nodes = append(nodes, n)
	}
	l := ledger.Rebuild(c, nodes, scene.Noon)
	require.True(t, l.Failing("p"))
	require.Empty(t, l.Slots)
	require.Equal(t, []ledger.Begun{{Repair: "rn000", At: scene.Noon}}, l.Repairs["civo://n000"], "each repair once")
}

var repairs int

// nextRepair returns a new id.
func nextRepair() string {
	repairs++
	return fmt.Sprintf("r%05d", repairs)
}
