package ledger_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/remediations/testing/scene"
)

var anyLedger = rapid.Custom(func(t *rapid.T) *ledger.Ledger {
	l := &ledger.Ledger{Slots: []ledger.Slot{}, Orphans: []ledger.Orphan{}, Repairs: map[string][]ledger.Begun{}}
	for range rapid.IntRange(0, 3).Draw(t, "slots") {
		l.Slots = append(l.Slots, ledger.Slot{
			Node: scene.AnyID.Draw(t, "node"), UID: scene.AnyText.Draw(t, "uid"), ProviderID: scene.AnyText.Draw(t, "pid"), Zone: scene.AnyText.Draw(t, "zone"),
			Pool: scene.AnyText.Draw(t, "pool"), Repair: scene.AnyID.Draw(t, "repair"), Attempt: scene.AnyID.Draw(t, "attempt"), Since: scene.AnyTime.Draw(t, "since"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "machines") {
		l.Repairs[scene.AnyID.Draw(t, "machine")] = []ledger.Begun{{Repair: scene.AnyID.Draw(t, "begun"), At: scene.AnyTime.Draw(t, "at")}}
	}
	if rapid.Bool().Draw(t, "a leader") {
		l.Slots = append(l.Slots, ledger.Slot{Kind: KindLocation, Node: scene.AnyID.Draw(t, "leader"), Successor: scene.AnyID.Draw(t, "successor"), Location: scene.AnyText.Draw(t, "location"), Repair: scene.AnyID.Draw(t, "repair"), Attempt: scene.AnyID.Draw(t, "attempt"), Since: scene.AnyTime.Draw(t, "since")})
		l.Moves = map[string][]ledger.Begun{scene.AnyText.Draw(t, "moved"): {{Repair: scene.AnyID.Draw(t, "begun"), At: scene.AnyTime.Draw(t, "at")}}}
	}
	if rapid.Bool().Draw(t, "orphan") {
		r := scene.AnyRecord.Draw(t, "record")
		l.Orphans = append(l.Orphans, ledger.Orphan{Node: scene.AnyID.Draw(t, "orphan's node"), UID: scene.AnyText.Draw(t, "uid"), ProviderID: scene.AnyText.Draw(t, "pid"), Record: *r})
	}
	if rapid.Bool().Draw(t, "status") {
		l.Status = ledger.Status{
			Mode: "enforce", Blind: scene.AnyText.Draw(t, "blind"), Exhausted: map[string]int{scene.AnyID.Draw(t, "policy"): 2}, Holds: map[Reason]string{ReasonAtLimit: scene.AnyText.Draw(t, "hold")},
			Breakers: map[string]ledger.Breaker{ledger.ScopeCluster: {State: ledger.BreakerOpen, Since: scene.AnyTime.Draw(t, "open"), Unhealthy: 3, Nodes: 9, Quiet: scene.AnyTime.Draw(t, "quiet"), Trial: scene.AnyText.Draw(t, "trial")}},
			SelfTest: selftest.Result{State: selftest.Missing, Message: scene.AnyText.Draw(t, "message"), Since: scene.AnyTime.Draw(t, "self-test since")},
		}
	}
	if rapid.Bool().Draw(t, "arrived") {
		l.Arrival = scene.AnyTime.Draw(t, "arrival")
	}
	return l
})

func TestLedgerReadsBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLedger.Draw(t, "ledger")
		got, err := ledger.Decode(l.Encode())
		require.NoError(t, err)
		require.Equal(t, l, got)
	})
	got, err := ledger.Decode((&ledger.Ledger{}).Encode())
	require.NoError(t, err)
	require.NotNil(t, got.Repairs, "an empty ledger can be written to")
}

func TestLedgerThatIsNotUnderstoodIsAnError(t *testing.T) {
	good := (&ledger.Ledger{}).Encode()
	for name, damage := range map[string]func(map[string]string){
		"empty":                      func(d map[string]string) { clear(d) },
		"a later version":            func(d map[string]string) { d[ledger.KeyVersion] = "2" },
		"no version":                 func(d map[string]string) { delete(d, ledger.KeyVersion) },
		"no slots":                   func(d map[string]string) { delete(d, ledger.KeySlots) },
		"no repairs":                 func(d map[string]string) { delete(d, ledger.KeyRepairs) },
		"a slot of another type":     func(d map[string]string) { d[ledger.KeySlots] = `[{"node":3}]` },
		"something behind the slots": func(d map[string]string) { d[ledger.KeySlots] = `[] []` },
		"a bracket behind the slots": func(d map[string]string) { d[ledger.KeySlots] = `[]]` },
		"a brace behind the repairs": func(d map[string]string) { d[ledger.KeyRepairs] = `{}}` },
		"an orphan without a repair": func(d map[string]string) { d[ledger.KeyOrphans] = `[{"node":"n1","uid":"u","record":{}}]` },
		"slots that are an object":   func(d map[string]string) { d[ledger.KeySlots] = `{}` },
		"moves that are a list":      func(d map[string]string) { d[ledger.KeyMoves] = `[]` },
		"moves that are nothing":     func(d map[string]string) { d[ledger.KeyMoves] = `` },
	} {
		t.Run(name, func(t *testing.T) {
			d := maps.Clone(good)
			_, err := ledger.Decode(d)
			require.NoError(t, err, "the control")
			damage(d)
			_, err = ledger.Decode(d)
			require.Error(t, err)
		})
	}
}

// TestArrivalHoldsNoRepair: a ledger without an arrival, or with an unreadable one, is valid.
func TestArrivalHoldsNoRepair(t *testing.T) {
	l := &ledger.Ledger{Slots: []ledger.Slot{{Node: "n1", Repair: "r1", Attempt: "r1-0-1", Since: scene.Noon}}, Orphans: []ledger.Orphan{}, Repairs: map[string][]ledger.Begun{}}
	require.NotContains(t, l.Encode(), ledger.KeyArrival)
	for _, text := range []string{"", "yesterday", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-10:00", `"2026-03-04T12:00:00Z"`} {
		data := l.Encode()
		data[ledger.KeyArrival] = text
		got, err := ledger.Decode(data)
		require.NoError(t, err, text)
		require.Equal(t, l, got, text)
		_, err = ledger.DecodeArrival(data)
		require.ErrorContains(t, err, "counts as never")
	}
	l.Arrival = scene.Noon.Add(time.Millisecond).In(time.FixedZone("", 3600))
	data := l.Encode()
	require.Equal(t, "2026-03-04T12:00:00Z", data[ledger.KeyArrival])
	got, err := ledger.Decode(data)
	require.NoError(t, err)
	require.Equal(t, scene.Noon, got.Arrival)
	require.Equal(t, scene.Noon, got.Clone().Arrival)
}

func TestReserveTakesOneSlotANodeAndCountsARepairOnce(t *testing.T) {
	c, n := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour, ZoneLabel: "zone"}}, scene.Bare("n1")
	n.Labels["zone"] = "z1"
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	r := &Record{ID: "r1", Intent: &Intent{ID: "r1-0-1"}}
	l.Reserve(c, n, r, scene.Noon)
	r.Intent.ID = "r1-0-2"
	l.Reserve(c, n, r, scene.Noon.Add(time.Hour))
	require.Equal(t, []ledger.Slot{{Node: "n1", UID: "uid-n1", ProviderID: "civo://n1", Zone: "z1", Repair: "r1", Attempt: "r1-0-2", Since: scene.Noon.Add(time.Hour)}}, l.Slots)
	require.Equal(t, map[string][]ledger.Begun{"civo://n1": {{Repair: "r1", At: scene.Noon}}}, l.Repairs)
	require.Empty(t, l.Wide, "no repair of one node holds the whole cluster's")

	require.True(t, l.Release("r1"))
	require.False(t, l.Release("r1"))
	require.Len(t, l.Repairs, 1, "what began has begun, whatever becomes of its slot")

	r.ID = "r2"
	l.Reserve(c, n, r, scene.Noon.Add(25*time.Hour))
	require.Equal(t, "r2", l.Repairs["civo://n1"][0].Repair, "a repair beyond the window is forgotten")
	require.Len(t, l.Repairs["civo://n1"], 1)
	l.Reserve(c, scene.Bare("n2"), &Record{ID: "r3", Intent: &Intent{ID: "r3-0-1"}}, scene.Noon.Add(50*time.Hour))
	require.NotContains(t, l.Repairs, "civo://n1", "a machine with nothing left is forgotten, too")
	l.Forget(scene.Bare("n2"))
	require.Empty(t, l.Repairs)
}

// TestCloneOfTheLedgerIsItsOwn: a change of the copy does not change the original, because a change
// that cannot be saved must be lost.
func TestCloneOfTheLedgerIsItsOwn(t *testing.T) {
	c, n := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}, scene.Bare("n1")
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	l.Reserve(c, n, &Record{ID: "r1", Intent: &Intent{ID: "r1-0-1"}}, scene.Noon)
	before := l.Encode()
	copied := l.Clone()
	copied.Reserve(c, scene.Bare("n2"), &Record{ID: "r2", Intent: &Intent{ID: "r2-0-1"}}, scene.Noon.Add(time.Hour))
	copied.Release("r1")
	copied.Forget(n)
	require.Equal(t, before, l.Encode())
}

// TestMachineSurvivesItsNode: a Node that is deleted and registered again keeps the count of its
// repairs.
func TestMachineSurvivesItsNode(t *testing.T) {
	a, b := scene.Bare("n1"), scene.Bare("n1-again")
	b.Spec.ProviderID = a.Spec.ProviderID
	require.Equal(t, ledger.Machine(a), ledger.Machine(b))
	a.Spec.ProviderID = ""
	require.Equal(t, "n1", ledger.Machine(a))
}

func TestRebuiltLedgerHoldsWhatTheNodesShow(t *testing.T) {
	c := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}
	flying, waiting, gentle, quiet := scene.InFlight(scene.Bare("n1"), "reboot"), scene.Bare("n2"), scene.InFlight(scene.Bare("n3"), "mark-ready"), scene.Bare("n4")
	r, err := DecodeRecord(flying.Annotations[NodeRepairKey])
	require.NoError(t, err)
	r.ID, r.Phase = "r2", PhasePending
	waiting.Annotations[NodeRepairKey] = r.Encode()
	l := ledger.Rebuild(c, []*corev1.Node{flying, waiting, gentle, quiet}, scene.Noon)
	require.Len(t, l.Slots, 1)
	require.Equal(t, "n1", l.Slots[0].Node)
	require.Equal(t, map[string][]ledger.Begun{"civo://n1": {{Repair: "rn1", At: scene.Noon}}, "civo://n2": {{Repair: "r2", At: scene.Noon}}}, l.Repairs)
	_, err = ledger.Decode(l.Encode())
	require.NoError(t, err)
}

// TestASlotWhoseIntentWasNeverWrittenGivesWayToTheNext: a process ended after it took the slot, and
// the next process starts the repair with another id. The slot of another machine that had the
// Node's name stays.
func TestASlotWhoseIntentWasNeverWrittenGivesWayToTheNext(t *testing.T) {
	c, l := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}, &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	another, n := scene.InFlight(scene.Bare("n1"), "reboot"), scene.InFlight(scene.Bare("n1"), "reboot")
	another.UID, another.Spec.ProviderID = "uid-0", "civo://0"
	for i, of := range []*corev1.Node{another, n, n} {
		r, err := DecodeRecord(of.Annotations[NodeRepairKey])
		require.NoError(t, err)
		r.ID = fmt.Sprintf("r%d", i)
		l.Reserve(c, of, r, scene.Noon)
	}
	var held []string
	for _, s := range l.Slots {
		held = append(held, s.Repair)
	}
	require.Equal(t, []string{"r0", "r2"}, held)
}

// TestReplacementIsInTheLedgerBeforeItsNodeGoes: the ledger keeps the record after the Node is
// gone, until the repair is released.
func TestReplacementIsInTheLedgerBeforeItsNodeGoes(t *testing.T) {
	c, n := &Config{Limits: Limits{RepairsWindow: 24 * time.Hour}}, scene.InFlight(scene.Bare("n1"), "replace")
	r, err := DecodeRecord(n.Annotations[NodeRepairKey])
	require.NoError(t, err)
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
	l.Reserve(c, n, r, scene.Noon)
	require.Equal(t, []ledger.Orphan{{Node: "n1", UID: "uid-n1", ProviderID: "civo://n1", Record: *r}}, l.Orphans)
	require.Equal(t, l.Orphans, ledger.Rebuild(c, []*corev1.Node{n}, scene.Noon).Orphans, "a deleted ledger is made again with it")
	copied := l.Clone()
	require.True(t, copied.Release(r.ID))
	require.Empty(t, copied.Orphans)
	require.Len(t, l.Orphans, 1)

	again, another := scene.Bare("n9"), scene.Bare("n2")
	again.Spec.ProviderID = "civo://n1"
	require.NotNil(t, l.Replacing(scene.Bare("n1")), "a Node of its name")
	require.NotNil(t, l.Replacing(again), "a Node of its machine")
	require.Nil(t, l.Replacing(another))
}

// TestAStoppedPolicyContinues: it does after a person's reset, or after a repair has shown that the
// provider accepts calls again.
func TestAStoppedPolicyContinues(t *testing.T) {
	for name, c := range map[string]struct {
		then    func(*ledger.Ledger)
		stopped bool
	}{
		"nothing happens":            {func(*ledger.Ledger) {}, true},
		"a reset":                    {func(l *ledger.Ledger) { l.Allow("p") }, false},
		"a reset of another":         {func(l *ledger.Ledger) { l.Allow("q") }, true},
		"a repair recovered":         {func(l *ledger.Ledger) { l.Finished("p", nextRepair(), OutcomeRecovered) }, false},
		"a repair of another":        {func(l *ledger.Ledger) { l.Finished("q", nextRepair(), OutcomeRecovered) }, true},
		"one recovered by itself":    {func(l *ledger.Ledger) { l.Finished("p", nextRepair(), OutcomeSelfRecovered) }, true},
		"a copy of it was let go on": {func(l *ledger.Ledger) { l.Clone().Allow("p") }, true},
		"a repair ran out of steps":  {func(l *ledger.Ledger) { l.Finished("p", nextRepair(), OutcomeExhausted) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger.Ledger{}
			l.Stop("p", "the key was revoked")
			c.then(l)
			require.Equal(t, c.stopped, l.Status.Stopped["p"] == "the key was revoked")
		})
	}
}

// TestLimitsInWords: the status has the limits as configured, by their keys.
func TestLimitsInWords(t *testing.T) {
	l := Limits{
		Concurrent: Quantity{Value: 3}, ConcurrentPerZone: Quantity{Value: 10, Percent: true}, ConcurrentPerPool: Quantity{Value: 1},
		Unhealthy: Quantity{Value: 20, Percent: true}, StormCooldown: 10 * time.Minute, StartupGrace: 10 * time.Minute,
		ZoneLabel: "example.com/rack", PoolLabels: []string{"example.com/pool", "pool"},
	}
	require.Equal(t, map[string]string{
		"concurrent": "3", "concurrentPerZone": "10%", "concurrentPerPool": "1", "unhealthy": "20%", "stormCooldown": "10m0s", "startupGrace": "10m0s",
		"zoneLabel": "example.com/rack", "poolLabels": "example.com/pool,pool",
	}, l.Words())
}
