package ledger_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestLedgerWritesThePartsThatItHas: each part is decoded again, and an empty part is not written.
func TestLedgerWritesThePartsThatItHas(t *testing.T) {
	require.ElementsMatch(t, []string{ledger.KeyVersion, ledger.KeySlots, ledger.KeyRepairs, ledger.KeyOrphans, ledger.KeyStatus}, slices.Collect(maps.Keys((&ledger.Ledger{}).Encode())))
	begun := []ledger.Begun{{Repair: "r1", At: scene.Noon}}
	full := &ledger.Ledger{
		Slots: []ledger.Slot{{Node: "n1", Repair: "r1", Since: scene.Noon}}, Repairs: map[string][]ledger.Begun{"m": begun}, Moves: map[string][]ledger.Begun{"eu": begun}, Wide: begun,
		Cures:  map[string][]ledger.Cure{"m": {{Repair: "r0", Policy: "p", At: scene.Noon, Step: StepRef{Name: "reboot", Attempt: 1}, Steps: Attempts{{Name: "reboot", Number: 1}}}}},
		Unseen: []ledger.Span{{From: scene.Noon}}, Orphans: []ledger.Orphan{}, Arrival: scene.Noon,
	}
	got, err := ledger.Decode(full.Encode())
	require.NoError(t, err)
	require.Equal(t, full, got)
}

func TestRepairsOfAMachineCountForTheirWindow(t *testing.T) {
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{"m": {
		{Repair: "r1", At: scene.Noon.Add(-time.Hour)}, {Repair: "r3", At: scene.Noon.Add(-10 * time.Minute)},
		{Repair: "r2", At: scene.Noon.Add(-time.Hour + 1)}, {Repair: "own", At: scene.Noon.Add(-50 * time.Minute)}, {Repair: "r4", At: scene.Noon},
	}}}
	begun := l.Begun("m", "own", scene.Noon, time.Hour)
	var ids []string
	for _, b := range begun {
		ids = append(ids, b.Repair)
	}
	require.Equal(t, []string{"r3", "r2", "r4"}, ids, "an hour ago is not within the hour")
	require.Empty(t, l.Begun("another", "own", scene.Noon, time.Hour))
	require.Len(t, l.Repairs["m"], 5, "the ledger keeps its own")
}

func TestPruneDropsEntriesAtTheirExactEnd(t *testing.T) {
	c := &Config{Limits: Limits{RepairsWindow: 96 * time.Hour}, Policies: []*Policy{{RelapseWindow: time.Hour}, {RelapseWindow: time.Minute}}}
	window, relapse := 96*time.Hour, time.Hour+PendingFor
	left := func(age func(kind string) time.Duration) []int {
		begun := func(kind string) []ledger.Begun {
			return []ledger.Begun{{Repair: "r1", At: scene.Noon.Add(-age(kind))}}
		}
		l := &ledger.Ledger{
			Repairs: map[string][]ledger.Begun{"m": begun("repairs")}, Moves: map[string][]ledger.Begun{"eu": begun("moves")}, Wide: begun("wide"),
			Cures:  map[string][]ledger.Cure{"m": {{Repair: "r1", Policy: "p", At: scene.Noon.Add(-age("cures"))}}},
			Unseen: []ledger.Span{{From: scene.Noon.Add(-1000 * time.Hour), To: scene.Noon.Add(-age("unseen"))}},
		}
		l.Prune(c, scene.Noon)
		return []int{len(l.Repairs), len(l.Moves), len(l.Wide), len(l.Cures), len(l.Unseen)}
	}
	over := map[string]time.Duration{"repairs": window, "moves": window, "wide": ledger.WideApart, "cures": relapse, "unseen": 2 * relapse}
	require.Equal(t, []int{0, 0, 0, 0, 0}, left(func(kind string) time.Duration { return over[kind] }))
	require.Equal(t, []int{1, 1, 1, 1, 1}, left(func(kind string) time.Duration { return over[kind] - 1 }))
	going := &ledger.Ledger{Unseen: []ledger.Span{{From: scene.Noon.Add(-1000 * time.Hour)}}}
	going.Prune(c, scene.Noon)
	require.Len(t, going.Unseen, 1, "a blindness that goes on")
}

func TestOrphanIsOfItsNodeOrItsMachine(t *testing.T) {
	l := &ledger.Ledger{Orphans: []ledger.Orphan{{Node: "n1"}, {Node: "n2", ProviderID: "civo://2"}}}
	bareMetal := scene.Bare("n9")
	bareMetal.Spec.ProviderID = ""
	require.Nil(t, l.Replacing(bareMetal), "two Nodes without a provider ID are not one machine")
	require.Equal(t, &l.Orphans[0], l.Replacing(scene.Bare("n1")))
	other := scene.Bare("n3")
	other.Spec.ProviderID = "civo://2"
	require.Equal(t, &l.Orphans[1], l.Replacing(other))
	require.True(t, l.ReplacingName("n2"))
	require.False(t, l.ReplacingName("n3"))
}

// TestSlotsOfANodeAndOfALeaderAreTwo: the end of one does not free the other.
func TestSlotsOfANodeAndOfALeaderAreTwo(t *testing.T) {
	node, leader := ledger.Slot{Node: "n1", Repair: "r1"}, ledger.Slot{Kind: KindLocation, Node: "n1", Repair: "r2"}
	other := ledger.Slot{Kind: KindLocation, Node: "n2", Repair: "r3"}
	l := &ledger.Ledger{Slots: []ledger.Slot{node, leader, other}}
	require.True(t, l.Release("r1"))
	require.Equal(t, []ledger.Slot{leader, other}, l.Slots)
	require.False(t, l.Release("r1"))
	l.Slots = []ledger.Slot{node, leader, other}
	require.True(t, l.Release("r2"))
	require.Equal(t, []ledger.Slot{node, other}, l.Slots)
	require.False(t, l.Release("r2"))
}

// TestSlotsUnderOneNameOfTwoMachinesAreTwo: the end of one machine's repair does not free the slot
// of the machine that had the name before.
func TestSlotsUnderOneNameOfTwoMachinesAreTwo(t *testing.T) {
	c, old, now := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}, scene.Bare("n1"), scene.Bare("n1")
	now.UID, now.Spec.ProviderID = "uid-new", "civo://new"
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	l.Reserve(c, old, &Record{ID: "r1", Intent: &Intent{ID: "r1-0-1"}, Step: StepRef{Name: "replace", Attempt: 1}}, scene.Noon)
	l.Reserve(c, now, &Record{ID: "r2", Intent: &Intent{ID: "r2-0-1"}, Step: StepRef{Name: "reboot", Attempt: 1}}, scene.Noon)
	require.Len(t, l.Slots, 2)
	require.True(t, l.Slots[0].Of(old))
	require.False(t, l.Slots[0].Of(now))
	require.True(t, l.Release("r2"))
	require.Equal(t, "r1", l.Slots[0].Repair)
	require.True(t, l.Outlives("r1"))
	l.ReleaseMachine(now)
	require.Len(t, l.Slots, 1)
	l.ReleaseMachine(old)
	require.Empty(t, l.Slots)
	require.Empty(t, l.Orphans)
}

func TestMovesOfALocation(t *testing.T) {
	l := &ledger.Ledger{}
	l.Moved("eu", "r1", scene.Noon)
	l.Moved("eu", "r1", scene.Noon.Add(-time.Minute))
	require.Equal(t, []ledger.Begun{{Repair: "r1", At: scene.Noon}}, l.Moves["eu"], "the last move of a repair counts")
	l.Moved("eu", "r1", scene.Noon.Add(time.Minute))
	require.Equal(t, []ledger.Begun{{Repair: "r1", At: scene.Noon.Add(time.Minute)}}, l.Moves["eu"])
	l.Moved("eu", "r2", scene.Noon)
	require.Equal(t, "r1", l.LastMove("eu", "").Repair)
	require.Equal(t, "r2", l.LastMove("eu", "r1").Repair)
	require.Zero(t, l.LastMove("us", ""))

	r := &Record{ID: "r3", Location: "eu"}
	for name, c := range map[string]struct {
		slot  ledger.Slot
		knows bool
	}{
		"its slot":              {ledger.Slot{Kind: KindLocation, Node: "n1", Location: "eu", Repair: "r3"}, true},
		"a node's slot":         {ledger.Slot{Node: "n1", Location: "eu", Repair: "r3"}, false},
		"another node's slot":   {ledger.Slot{Kind: KindLocation, Node: "n2", Location: "eu", Repair: "r3"}, false},
		"another location's":    {ledger.Slot{Kind: KindLocation, Node: "n1", Location: "us", Repair: "r3"}, false},
		"another repair's slot": {ledger.Slot{Kind: KindLocation, Node: "n1", Location: "eu", Repair: "r2"}, false},
	} {
		l.Slots = []ledger.Slot{c.slot}
		require.Equal(t, c.knows, l.KnowsMove("n1", r), name)
	}
	require.True(t, l.KnowsMove("n1", &Record{ID: "r1", Location: "eu"}), "by its move")
}

// TestRebuiltLedgerCountsWhatTheHistorySays: the ledger has the machine's disruptive repairs, each
// once, its cures and its current repair.
func TestRebuiltLedgerCountsWhatTheHistorySays(t *testing.T) {
	c := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}
	step := StepRef{Name: "reboot", Attempt: 1}
	before := scene.Noon.Add(-time.Hour)
	n := scene.Bare("n1")
	n.Annotations[HistoryKey] = EncodeEntries([]Entry{
		{ID: "r6", Policy: "p", Outcome: OutcomeCancelled, Began: before, Ended: scene.Noon},
		{ID: "r5", Policy: "p", Outcome: OutcomeRecovered, Began: before, Ended: scene.Noon, Steps: Attempts{{Name: "reboot", Number: 1}}, Last: &step},
		{ID: "r4", Policy: "held", Outcome: OutcomeCancelled, Began: before, Ended: scene.Noon},
		{ID: "r3", Policy: "s", Target: "sidecar-0a", Outcome: OutcomeRecovered, Began: before, Ended: scene.Noon, Steps: Attempts{{Name: "mark-ready", Number: 1}}, Last: &StepRef{Name: "mark-ready", Attempt: 1}},
	})
	ran := scene.InFlight(scene.Bare("n2"), "reboot")
	scene.InPhase(ran, PhaseExhausted)
	overdue := scene.InFlight(scene.Bare("n3"), "reboot")
	late := ReadJournal(overdue).Record
	late.Deadline = scene.Noon.Add(-24 * time.Hour)
	late.Intent.At, late.Since = late.Deadline, late.Deadline
	overdue.Annotations[NodeRepairKey] = late.Encode()
	waiting := scene.InFlight(scene.Bare("n4"), "replace")
	scene.InPhase(waiting, PhasePending)
	l := ledger.Rebuild(c, []*corev1.Node{n, ran, overdue, waiting, scene.Bare("n5")}, scene.Noon)
	require.Empty(t, l.Slots)
	require.Empty(t, l.Orphans, "a replacement that is not under way has no orphan")
	require.Equal(t, map[string][]ledger.Begun{
		"civo://n1": {{Repair: "r5", At: before}}, "civo://n3": {{Repair: "rn3", At: scene.Noon}}, "civo://n4": {{Repair: "rn4", At: scene.Noon}},
	}, l.Repairs, "an exhausted repair is counted by its history")
	require.Equal(t, map[string]int{"another-policy": 1}, l.Status.Exhausted)
	require.Len(t, l.Cures["civo://n1"], 1, "a sidecar's cure is none of the node, and a repair that was only held ends no cure")
	require.Equal(t, "r5", l.Cures["civo://n1"][0].Repair)
}

// TestRowOfFailuresCountsEachRepairOnce: a later result of a repair replaces the earlier one.
func TestRowOfFailuresCountsEachRepairOnce(t *testing.T) {
	l := &ledger.Ledger{}
	require.True(t, l.Finished("p", "r1", OutcomeExhausted))
	require.False(t, l.Finished("p", "r1", OutcomeExhausted))
	require.Equal(t, 1, l.Status.Exhausted["p"])
	require.True(t, l.Finished("p", "r1", OutcomeRecovered), "it is written over")
	require.NotContains(t, l.Status.Exhausted, "p")
	require.True(t, l.Finished("p", "r1", OutcomeRelapsed))
	require.Equal(t, 1, l.Status.Exhausted["p"])
	require.True(t, l.Finished("p", "", OutcomeExhausted))
	require.True(t, l.Finished("p", "", OutcomeExhausted), "repairs without an ID are not one")
	require.True(t, l.Failing("p"))
	require.False(t, l.Finished("p", "r9", OutcomeSelfRecovered), "a stopped policy goes on after a cure alone")
	require.True(t, l.Failing("p"))
	require.True(t, l.Finished("q", "r1", OutcomeExhausted))
	require.True(t, l.Finished("q", "r2", OutcomeSelfRecovered), "a row that is not full is broken by any other end")
	require.NotContains(t, l.Status.Exhausted, "q")
	require.True(t, l.Failing("p"), "the row of another policy is its own")
	require.Len(t, l.Status.Ends["p"], 3)
	old := &ledger.Ledger{Status: ledger.Status{Exhausted: map[string]int{"p": 2}}}
	require.True(t, old.Finished("p", "r1", OutcomeExhausted))
	require.True(t, old.Failing("p"), "the row of an earlier version goes on")
}

func TestTimeThatDrydockWasBlind(t *testing.T) {
	l := &ledger.Ledger{}
	require.False(t, l.Saw(time.Time{}, scene.Noon), "it sees, and did before")
	require.True(t, l.Saw(scene.Noon.Add(-time.Minute), scene.Noon))
	require.False(t, l.Saw(scene.Noon.Add(-time.Minute), scene.Noon))
	require.Equal(t, time.Minute, l.UnseenIn(scene.Noon.Add(-time.Hour), scene.Noon), "it goes on")
	require.True(t, l.Saw(time.Time{}, scene.Noon.Add(time.Minute)))
	require.Equal(t, []ledger.Span{{From: scene.Noon.Add(-time.Minute), To: scene.Noon.Add(time.Minute)}}, l.Unseen)
	require.Equal(t, 90*time.Second, l.UnseenIn(scene.Noon.Add(-30*time.Second), scene.Noon.Add(time.Hour)))
	require.Zero(t, l.UnseenIn(scene.Noon.Add(time.Hour), scene.Noon.Add(2*time.Hour)))
	for i := range ledger.UnseenMost {
		when := scene.Noon.Add(time.Duration(i+1) * time.Hour)
		l.Saw(when, when)
		l.Saw(time.Time{}, when.Add(time.Minute))
	}
	require.Len(t, l.Unseen, ledger.UnseenMost)
	require.Equal(t, ledger.Span{From: scene.Noon.Add(-time.Minute), To: scene.Noon.Add(61 * time.Minute)}, l.Unseen[0], "the oldest two are one")
}

func TestCureOfAnotherPolicyStays(t *testing.T) {
	last := &StepRef{Name: "reboot", Attempt: 1}
	l := &ledger.Ledger{}
	require.True(t, l.Cured("another", &Entry{ID: "r0", Policy: "p", Outcome: OutcomeRecovered, Last: last}, nil))
	require.True(t, l.Cured("m", &Entry{ID: "r1", Policy: "p", Outcome: OutcomeRecovered, Last: last}, []string{ledger.ScopeCluster}))
	require.True(t, l.Cured("m", &Entry{ID: "r2", Policy: "q", Outcome: OutcomeRecovered, Last: last}, nil))
	require.False(t, l.Cured("m", &Entry{ID: "r3", Policy: "z", Outcome: OutcomeCancelled, Last: last}, nil), "nothing was known of it")
	require.True(t, l.Cured("m", &Entry{ID: "r4", Policy: "p", Outcome: OutcomeExhausted, Last: last}, nil))
	require.Equal(t, "r2", l.Cures["m"][0].Repair)
	require.Len(t, l.Cures["m"], 1)
	l.Relapse("m", l.Cures["m"][0])
	require.True(t, l.Cures["m"][0].Relapsed)
	require.Equal(t, 1, l.Status.Exhausted["q"])
	require.True(t, l.Cured("m", &Entry{ID: "r5", Policy: "q", Outcome: OutcomeCancelled, Last: last}, nil))
	require.NotContains(t, l.Cures, "m")
	require.Contains(t, l.Cures, "another")
}

func TestMalformedArrivalIsIgnored(t *testing.T) {
	at, err := ledger.DecodeArrival(map[string]string{})
	require.NoError(t, err)
	require.Zero(t, at)
	for text, ok := range map[string]bool{
		"1969-12-31T23:59:59Z": false, "1970-01-01T00:00:00Z": true, "9999-12-31T23:59:59Z": true,
	} {
		_, err := ledger.DecodeArrival(map[string]string{ledger.KeyArrival: text})
		require.Equal(t, ok, err == nil, text)
	}
}

func TestCloneAndStopKeepAllThatIsThere(t *testing.T) {
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}, Moves: map[string][]ledger.Begun{"eu": {{Repair: "r1"}}, "us": {{Repair: "r2"}}}}
	require.Equal(t, l.Moves, l.Clone().Moves)
	l.Stop("p", "one")
	l.Stop("q", "two")
	require.Equal(t, map[string]string{"p": "one", "q": "two"}, l.Status.Stopped)
}
