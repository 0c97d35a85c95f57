package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestLedgerRemembersWhatChangedTheWholeCluster: a ledger that was deleted and rebuilt has it, too.
func TestLedgerRemembersWhatChangedTheWholeCluster(t *testing.T) {
	c, n := scene.LimitsAlone(), scene.Bare("n1")
	c.Provided = map[string]bool{"apply-cni": true}
	record := func(id string, phase Phase) *Record {
		return &Record{
			V: RecordVersion, ID: id, Policy: "p", Cause: Cause{Alert: "aa"}, Phase: phase, Step: StepRef{Name: "apply-cni", Attempt: 1}, Done: Attempts{{Name: "apply-cni", Number: 1}},
			Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Minute), Intent: &Intent{ID: id + "-0-1", At: scene.Noon},
		}
	}
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	l.Reserve(c, n, record("r1", PhaseActing), scene.Noon)
	l.Reserve(c, n, record("r1", PhaseActing), scene.Noon.Add(time.Minute))
	require.Equal(t, []ledger.Begun{{Repair: "r1", At: scene.Noon.Add(time.Minute)}}, l.Wide)
	require.True(t, l.Slots[0].Wide)
	again, err := ledger.Decode(l.Encode())
	require.NoError(t, err)
	require.Equal(t, l.Wide, again.Wide)
	require.Equal(t, l.Wide, l.Clone().Wide)
	require.Zero(t, l.LastWide("r1"), "its own does not hold it")
	require.Equal(t, "r1", l.LastWide("r2").Repair)
	data := l.Encode()
	data[ledger.KeyWide] = "nonsense"
	_, err = ledger.Decode(data)
	require.ErrorIs(t, err, ledger.ErrMalformed)
	l.Release("r1")
	l.Prune(c, scene.Noon.Add(ledger.WideApart+time.Minute))
	require.Empty(t, l.Wide)

	n.Annotations[NodeRepairKey] = record("r2", PhaseVerifying).Encode()
	other := scene.Bare("n2")
	other.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "r3", Policy: "p", Outcome: OutcomeRecovered, Steps: Attempts{{Name: "restart-cni", Number: 1}, {Name: "apply-cni", Number: 1}}, Began: scene.Noon, Ended: scene.Noon.Add(-time.Minute)})
	rebuilt := ledger.Rebuild(c, []*corev1.Node{n, other}, scene.Noon)
	require.ElementsMatch(t, []ledger.Begun{{Repair: "r2", At: scene.Noon}, {Repair: "r3", At: scene.Noon.Add(-time.Minute)}}, rebuilt.Wide)
	require.True(t, rebuilt.Slots[0].Wide)
}
