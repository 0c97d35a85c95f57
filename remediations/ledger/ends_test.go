package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

func nodeOf(uid, providerID string) *corev1.Node {
	n := scene.Bare("n1")
	n.UID, n.Spec.ProviderID = types.UID(uid), providerID
	return n
}

func endsConfig() *Config {
	return &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}, Policies: []*Policy{{Name: "p", Cooldown: time.Hour, Plan: []Step{{Name: "reboot", Wait: 2 * time.Hour}}}}}
}

// TestAnEndIsOfItsMachine: an End belongs to a machine by spec.providerID, or else by the Node's
// UID. For limits.repairsWindow it also belongs by the Node's name.
func TestAnEndIsOfItsMachine(t *testing.T) {
	c, window := endsConfig(), 24*time.Hour
	cancel := ledger.CancelOf(Alert{Fingerprint: "a", Policy: "p"}, CancelledRepair{ID: "r1", At: scene.Noon}, scene.Noon)
	for name, of := range map[string]struct {
		was, is      *corev1.Node
		now, in2Days bool
	}{
		"one providerID, another UID":      {nodeOf("u1", "civo://1"), nodeOf("u2", "civo://1"), true, true},
		"another providerID":               {nodeOf("u1", "civo://1"), nodeOf("u1", "civo://2"), false, false},
		"no providerID, one UID":           {nodeOf("u1", ""), nodeOf("u1", ""), true, true},
		"no providerID, another UID":       {nodeOf("u1", ""), nodeOf("u2", ""), true, false},
		"a providerID that came later":     {nodeOf("u1", ""), nodeOf("u1", "civo://1"), true, true},
		"a Node with a providerID instead": {nodeOf("u1", ""), nodeOf("u2", "civo://1"), false, false},
	} {
		l := &ledger.Ledger{}
		l.Ended(c, of.was, cancel, scene.Noon)
		require.Equal(t, of.now, l.CancelKnown(of.is, "a", scene.Noon, window) != nil, name)
		require.Equal(t, of.in2Days, l.CancelKnown(of.is, "a", scene.Noon.Add(48*time.Hour), window) != nil, name)
		require.Nil(t, l.CancelKnown(of.is, "b", scene.Noon, window), name)
	}
	require.Nil(t, (*ledger.Ledger)(nil).CancelKnown(nodeOf("u1", ""), "a", scene.Noon, window), "a ledger that was not read knows nothing")
}

// TestTheLedgerKeepsTheLastEndOfEachPolicy: it also keeps the last cancel of each alert. Both are
// the same after encoding and decoding.
func TestTheLedgerKeepsTheLastEndOfEachPolicy(t *testing.T) {
	c, n, l := endsConfig(), nodeOf("u1", "civo://1"), &ledger.Ledger{Repairs: map[string][]ledger.Begun{}, Slots: []ledger.Slot{}, Orphans: []ledger.Orphan{}}
	ended := func(id, policy string, at time.Time) {
		e, ok := ledger.EndOf(c, Entry{ID: id, Policy: policy, Ended: at, Outcome: OutcomeRecovered, Steps: Attempts{{Name: "reboot", Number: 1}}})
		require.True(t, ok)
		require.Equal(t, at.After(scene.Noon.Add(-time.Hour)), l.Lacks(c, n, e, scene.Noon))
		l.Ended(c, n, e, scene.Noon)
	}
	ended("r1", "p", scene.Noon.Add(-2*time.Minute))
	ended("r2", "p", scene.Noon.Add(-time.Minute))
	ended("r3", "q", scene.Noon)
	ended("r0", "z", scene.Noon.Add(-2*time.Hour))
	a := Alert{Fingerprint: "a", Policy: "p"}
	l.Ended(c, n, ledger.CancelOf(a, CancelledRepair{ID: "r4", At: scene.Noon.Add(-time.Minute)}, scene.Noon), scene.Noon)
	l.Ended(c, n, ledger.CancelOf(a, CancelledRepair{ID: "r5", At: scene.Noon}, scene.Noon), scene.Noon)
	var ids []string
	for _, e := range l.EndsOf(n, scene.Noon, 0) {
		ids = append(ids, e.Repair)
	}
	require.Equal(t, []string{"r2", "r3", "r5"}, ids)
	read, err := ledger.Decode(l.Encode())
	require.NoError(t, err)
	require.Equal(t, l, read)

	again := ledger.CancelOf(a, CancelledRepair{ID: "r5", At: scene.Noon}, scene.Noon.Add(11*time.Hour))
	require.False(t, l.Lacks(c, n, again, scene.Noon.Add(11*time.Hour)), "it was seen lately")
	again.Seen = scene.Noon.Add(12 * time.Hour)
	require.True(t, l.Lacks(c, n, again, again.Seen))

	kept := l.Clone()
	require.True(t, kept.Uncancel(n, "a"))
	require.False(t, kept.Uncancel(n, "a"))
	require.Len(t, kept.EndsOf(n, scene.Noon, 0), 2)
	require.Len(t, l.EndsOf(n, scene.Noon, 0), 3, "the copy is its own")
	l.Forget(n)
	require.Empty(t, l.Ends, "a person's reset ends all of them")
}

// TestAnEntryWithoutARepairDoesNotCountAsAnEnd: such entries are repairs without a step, repairs of
// other targets, and repairs that a person has reset.
func TestAnEntryWithoutARepairDoesNotCountAsAnEnd(t *testing.T) {
	steps := Attempts{{Name: "reboot", Number: 1}}
	for name, e := range map[string]Entry{
		"it took no step": {ID: "r1"}, "of a sidecar": {ID: "r1", Target: "sidecar-0a", Steps: steps}, "it was reset": {ID: "r1", Steps: steps, Reset: true},
	} {
		_, ok := ledger.EndOf(endsConfig(), e)
		require.False(t, ok, name)
	}
	_, ok := ledger.EndOf(endsConfig(), Entry{ID: "r1", Steps: steps})
	require.True(t, ok, "the control")
}

// TestEndsAreForgottenWhenNothingRestsOnThem: an end is removed after the longest cooldown, and a
// cancel when its alert has been off the Node for the window.
func TestEndsAreForgottenWhenNothingRestsOnThem(t *testing.T) {
	c, n := endsConfig(), nodeOf("u1", "civo://1")
	kept := func(e ledger.End, age time.Duration) bool {
		e.Repair, e.At = "r1", scene.Noon.Add(-age)
		if e.Alert != "" {
			e.Seen = e.At
		}
		require.Equal(t, (&ledger.Ledger{}).Lacks(c, n, e, scene.Noon), len(endedOn(c, n, e)) == 1)
		return len(endedOn(c, n, e)) == 1
	}
	require.True(t, kept(ledger.End{Policy: "p"}, time.Hour-1))
	require.False(t, kept(ledger.End{Policy: "p"}, time.Hour))
	require.True(t, kept(ledger.End{Policy: "p", Restarted: true}, 2*time.Hour-1))
	require.False(t, kept(ledger.End{Policy: "p", Restarted: true}, 2*time.Hour))
	require.True(t, kept(ledger.End{Policy: "p", Alert: "a"}, 24*time.Hour-1))
	require.False(t, kept(ledger.End{Policy: "p", Alert: "a"}, 24*time.Hour))
	require.False(t, (&ledger.Ledger{}).Lacks(c, n, ledger.End{Policy: "p", At: scene.Noon.Add(time.Hour)}, scene.Noon), "a time from the future")
}

func endedOn(c *Config, n *corev1.Node, e ledger.End) map[string][]ledger.End {
	l := &ledger.Ledger{}
	l.Ended(c, n, e, scene.Noon)
	return l.Ends
}

// TestTheLedgerKeepsABoundedNumberOfCancels: the oldest cancels of a machine are removed first, and
// the ends of its repairs stay.
func TestTheLedgerKeepsABoundedNumberOfCancels(t *testing.T) {
	c, n, l := endsConfig(), nodeOf("2d9b7f4e-2f1a-4c55-8a6b-000000000000", ""), &ledger.Ledger{}
	l.Ended(c, n, ledger.End{Repair: "r000000001", Policy: "node-not-ready", At: scene.Noon, Outcome: OutcomeSelfRecovered, Restarted: true}, scene.Noon)
	for i := range 100 {
		at := scene.Noon.Add(time.Duration(i) * time.Second)
		a := Alert{Fingerprint: fmt.Sprintf("%016x", i), Policy: "node-not-ready"}
		l.Ended(c, n, ledger.CancelOf(a, CancelledRepair{ID: "r000000001", At: at}, at), at)
	}
	require.Len(t, l.Ends["n1"], 1+ledger.CancelsMost)
	require.Equal(t, "r000000001", l.Ends["n1"][0].Repair)
	require.Equal(t, fmt.Sprintf("%016x", 100-ledger.CancelsMost), l.Ends["n1"][1].Alert)
	require.LessOrEqual(t, len(l.Encode()[ledger.KeyEnds]), 4<<10, "docs/reference/performance.md calculates with it")

	now := scene.Noon.Add(time.Hour)
	cancel := func(i int, seen time.Duration) ledger.End {
		at := scene.Noon.Add(time.Duration(i) * time.Second)
		return ledger.CancelOf(Alert{Fingerprint: fmt.Sprintf("%016x", i), Policy: "node-not-ready"}, CancelledRepair{ID: "r000000001", At: at}, at.Add(seen))
	}
	require.False(t, l.Lacks(c, n, cancel(0, time.Hour), now), "one that had to make room does not come back at each pass")
	require.True(t, l.Lacks(c, n, cancel(99, 13*time.Hour), now), "one that is kept is noted again, the control")
}

// TestARebuiltLedgerHasEndsAndCancels: both are read from the Node.
func TestARebuiltLedgerHasEndsAndCancels(t *testing.T) {
	c, n := endsConfig(), nodeOf("u1", "civo://1")
	n.Annotations[HistoryKey] = EncodeEntries([]Entry{{ID: "r2", Policy: "p", Outcome: OutcomeRecovered, Ended: scene.Noon, Steps: Attempts{{Name: "reboot", Number: 1}}}})
	a := Alert{V: RecordVersion, Policy: "p", Status: StatusFiring, Fingerprint: scene.FP, Cancelled: &CancelledRepair{ID: "r1", At: scene.Noon}}
	n.Annotations[a.Key()] = a.Encode()
	l := ledger.Rebuild(c, []*corev1.Node{n}, scene.Noon)
	require.Equal(t, "r2", l.Ends["civo://1"][0].Repair)
	require.Equal(t, "r1", l.CancelKnown(n, scene.FP, scene.Noon, 0).Repair)
}
