package ledger_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestTheSlotOfANodeIsOfItsOwnRepair: the slot of a location or of another node does not count.
func TestTheSlotOfANodeIsOfItsOwnRepair(t *testing.T) {
	l := &ledger.Ledger{Slots: []ledger.Slot{{Kind: KindLocation, Node: "n1", Repair: "l1"}, {Node: "n2", Repair: "r2"}, {Node: "n1", Repair: "r1"}}}
	require.Equal(t, "r1", l.SlotOf("n1").Repair)
	require.Equal(t, "r2", l.SlotOf("n2").Repair)
	require.Nil(t, l.SlotOf("n3"))
	require.Nil(t, (&ledger.Ledger{Slots: l.Slots[:2]}).SlotOf("n1"))
}

// TestTheSlotOfANodeHasItsRole: the slot has the role from the intent, or the node's present role.
func TestTheSlotOfANodeHasItsRole(t *testing.T) {
	for name, of := range map[string]struct{ then, now, want bool }{"neither": {}, "then": {then: true, want: true}, "now": {now: true, want: true}, "both": {true, true, true}} {
		n := scene.Bare("n1")
		if of.now {
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
		}
		l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
		l.Reserve(planConfig(), n, &Record{ID: "r1", Policy: "p", Step: StepRef{Name: "reboot", Attempt: 1}, Intent: &Intent{ID: "r1-0-1", ControlPlane: of.then}}, scene.Noon)
		require.Equal(t, of.want, l.Slots[0].ControlPlane, name)
		require.Empty(t, l.Orphans, "a reboot replaces no machine")
	}
}

// TestALocationsMoveTakesTheSlotOfItsLocation: it takes the slot from any other repair of the
// location, and no other slot.
func TestALocationsMoveTakesTheSlotOfItsLocation(t *testing.T) {
	c, r := planConfig(), scene.LocationRecord(PhaseActing)
	l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}, Slots: []ledger.Slot{
		{Node: "n5", Repair: "r5"}, {Kind: KindLocation, Node: "n4", Location: "eu", Repair: "r4"}, {Kind: KindLocation, Node: "n6", Location: "us", Repair: "r6"},
		{Node: "n1", Location: "eu", Repair: "r7"},
	}}
	repairs := func() (out []string) {
		for _, s := range l.Slots {
			out = append(out, s.Repair)
		}
		return out
	}
	l.Reserve(c, scene.Bare("n1"), r, scene.Noon)
	require.Equal(t, []string{"r5", "r6", "r7", "r1"}, repairs())
	require.Equal(t, "r1-0-1", l.Slots[3].Attempt)
	require.Empty(t, l.Repairs, "it counts against its location")
	back := scene.Noon
	r.Back = &back
	l.Reserve(c, scene.Bare("n1"), r, scene.Noon)
	require.Equal(t, r.PutBackID(), l.Slots[3].Attempt)
	l.ReleaseMachine(scene.Bare("n1"))
	require.Contains(t, repairs(), "r1", "the slot of a location is of no machine")
}

// TestARebuiltLedgerKnowsMoves: it finds them in the history and in the record on the Node.
func TestARebuiltLedgerKnowsMoves(t *testing.T) {
	c := planConfig()
	ended := scene.Noon.Add(-time.Minute)
	moved := Attempts{{Name: "promote-leader", Number: 1}}
	for name, of := range map[string]struct {
		record  func(r *Record)
		history *Entry
		moves   map[string][]ledger.Begun
		slots   int
		failed  bool
	}{
		"nothing":            {moves: nil},
		"an ended move":      {history: &Entry{ID: "r0", Location: "eu", Steps: moved, Ended: ended}, moves: map[string][]ledger.Begun{"eu": {{Repair: "r0", At: ended}}}},
		"it moved nothing":   {history: &Entry{ID: "r0", Location: "eu", Ended: ended}},
		"a node's repair":    {history: &Entry{ID: "r0", Steps: moved, Ended: ended}},
		"in flight":          {record: func(*Record) {}, moves: map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon.Add(-30 * time.Second)}}}, slots: 1},
		"without an intent":  {record: func(r *Record) { r.Phase, r.Intent, r.Moves = PhasePending, nil, nil }},
		"pending":            {record: func(r *Record) { r.Phase = PhasePending }, moves: map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon.Add(-30 * time.Second)}}}},
		"exhausted":          {record: func(r *Record) { r.Phase = PhaseExhausted }, moves: map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon.Add(-30 * time.Second)}}}, failed: true},
		"put back since":     {record: func(r *Record) { r.Phase = PhaseActing; back := scene.Noon.Add(-time.Second); r.Back = &back }, moves: map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon.Add(-time.Second)}}}, slots: 1},
		"put back before it": {record: func(r *Record) { r.Phase = PhaseActing; back := scene.Noon.Add(-time.Minute); r.Back = &back }, moves: map[string][]ledger.Begun{"eu": {{Repair: "r1", At: scene.Noon.Add(-30 * time.Second)}}}, slots: 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := scene.Bare("n1")
			if of.record != nil {
				r := scene.LocationRecord(PhaseVerifying)
				of.record(r)
				n.Annotations[LocationKey] = r.Encode()
			}
			if of.history != nil {
				n.Annotations[HistoryKey] = EncodeHistory(nil, *of.history)
			}
			l := ledger.Rebuild(c, []*corev1.Node{n}, scene.Noon)
			require.Equal(t, of.moves, l.Moves)
			require.Len(t, l.Slots, of.slots)
			require.Equal(t, of.failed, l.Status.Exhausted["mesh-leader-degraded"] == 1)
		})
	}
}

// TestARebuiltLedgerCountsStepsThatBegan: a repair that was reset, or that has no intent, does not
// count against the machine.
func TestARebuiltLedgerCountsStepsThatBegan(t *testing.T) {
	n := scene.Bare("n1")
	n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "r0", Reset: true, Began: scene.Noon, Ended: scene.Noon, Steps: Attempts{{Name: "reboot", Number: 1}}})
	n.Annotations[NodeRepairKey] = (&Record{V: 1, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour)}).Encode()
	a := Alert{V: 1, Policy: "p", Status: StatusFiring, Fingerprint: scene.FP, StartsAt: scene.Noon, ReceivedAt: scene.Noon}
	n.Annotations[a.Key()] = a.Encode()
	c := planConfig()
	c.Limits.RepairsWindow = 24 * time.Hour
	l := ledger.Rebuild(c, []*corev1.Node{n}, scene.Noon)
	require.Empty(t, l.Repairs)
	require.Empty(t, l.Ends)
	require.Empty(t, l.Wide)
}

// TestAnOrphansNodeIsGone: no Node has its name, or a Node with another UID has it.
func TestAnOrphansNodeIsGone(t *testing.T) {
	o := &ledger.Orphan{Node: "n1", UID: "u1"}
	require.True(t, o.Gone(nil))
	require.True(t, o.Gone(nodeOf("u2", "civo://1")))
	require.False(t, o.Gone(nodeOf("u1", "civo://1")))
}

// TestWhichRepairsTheLedgerKnows: each part of the ledger that names a repair counts.
func TestWhichRepairsTheLedgerKnows(t *testing.T) {
	begun := map[string][]ledger.Begun{"m": {{Repair: "other"}, {Repair: "r1"}}}
	for name, l := range map[string]*ledger.Ledger{
		"a slot":    {Slots: []ledger.Slot{{Repair: "other"}, {Repair: "r1"}}},
		"an orphan": {Orphans: []ledger.Orphan{{Record: Record{ID: "other"}}, {Record: Record{ID: "r1"}}}},
		"begun":     {Repairs: begun}, "a move": {Moves: begun},
	} {
		require.True(t, l.Knows("r1"), name)
		require.False(t, l.Knows("r2"), name)
	}
}

// TestWhichAttemptsTheLedgerKnows: it knows the attempt of the repair's slot and each earlier
// attempt. A withheld attempt has no number, and may be any attempt.
func TestWhichAttemptsTheLedgerKnows(t *testing.T) {
	l := &ledger.Ledger{Slots: []ledger.Slot{{Repair: "r1", Attempt: "r1-1-2"}, {Repair: "r2", Attempt: "r2-withheld"}}}
	for attempt, want := range map[string]bool{"r1-0-9": true, "r1-1-1": true, "r1-1-2": true, "r1-1-3": false, "r1-2-1": false} {
		require.Equal(t, want, l.KnowsAttempt("r1", attempt), attempt)
	}
	require.True(t, l.KnowsAttempt("r2", "r2-5-5"))
	require.False(t, l.KnowsAttempt("r3", "r3-0-1"))
}

// TestChangesOfTheWholeClusterKeepTheirUnknownFields: the changes of other repairs stay. The last
// change counts, in whatever order they are stored.
func TestChangesOfTheWholeClusterKeepTheirUnknownFields(t *testing.T) {
	c, n := scene.LimitsAlone(), scene.Bare("n1")
	was := ledger.Begun{Repair: "r1", At: scene.Noon.Add(-time.Minute), Unknown: `{"lane":1}`}
	other := ledger.Begun{Repair: "r2", At: scene.Noon.Add(-2 * time.Minute), Unknown: `{"lane":2}`}
	for _, wide := range [][]ledger.Begun{{was, other}, {other, was}} {
		l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}, Wide: wide}
		require.Equal(t, was, l.LastWide("r3"))
		require.Equal(t, other, l.LastWide("r1"))
		l.Reserve(c, n, &Record{ID: "r1", Policy: "p", Step: StepRef{Name: "apply-cni", Attempt: 1}, Intent: &Intent{ID: "r1-0-1"}}, scene.Noon)
		require.Equal(t, []ledger.Begun{other, {Repair: "r1", At: scene.Noon, Unknown: `{"lane":1}`}}, l.Wide)
	}
}

// TestARebuiltLedgerKnowsWhichStepsAreWide: a step for one node does not count.
func TestARebuiltLedgerKnowsWhichStepsAreWide(t *testing.T) {
	n := scene.InFlight(scene.Bare("n1"), "reboot")
	n.Annotations[HistoryKey] = EncodeHistory(nil, Entry{ID: "r0", Outcome: OutcomeRecovered, Steps: Attempts{{Name: "reboot", Number: 1}}, Began: scene.Noon, Ended: scene.Noon})
	require.Empty(t, ledger.Rebuild(scene.LimitsAlone(), []*corev1.Node{n}, scene.Noon).Wide)
	n.Annotations[NodeRepairKey] = (&Record{V: 1, ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1}, Done: Attempts{{Name: "apply-cni", Number: 1}}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour)}).Encode()
	require.Empty(t, ledger.Rebuild(scene.LimitsAlone(), []*corev1.Node{n}, scene.Noon).Wide, "without an intent the time of its step is unknown")
}

// TestClampCorrectsAnOrphanWithoutAnIntent: a missing intent causes no failure.
func TestClampCorrectsAnOrphanWithoutAnIntent(t *testing.T) {
	l := &ledger.Ledger{Orphans: []ledger.Orphan{{Record: Record{ID: "r1", Began: scene.Noon.Add(time.Hour)}}}}
	require.True(t, l.Clamp(scene.Noon))
	require.Equal(t, scene.Noon, l.Orphans[0].Record.Began)
}

// TestAResetWithoutAKnownNumberOfGPUsChangesNothing: copies of the ledger share the map, so it must
// not change.
func TestAResetWithoutAKnownNumberOfGPUsChangesNothing(t *testing.T) {
	l := &ledger.Ledger{GPUs: map[string]int{"m": 8}}
	was := l.GPUs
	l.ForgetGPUs(scene.Bare("n1"))
	require.Equal(t, reflect.ValueOf(was).Pointer(), reflect.ValueOf(l.GPUs).Pointer())
}

// TestTheStateOfAdmissionThatJustifiesAWrite: the first request justifies a write, and so does the
// removal of the webhook.
func TestTheStateOfAdmissionThatJustifiesAWrite(t *testing.T) {
	early := time.Time{}.Add(time.Minute) // as near to the zero time as two requests may be
	serving, asked := &ledger.Admission{Serving: scene.Noon}, &ledger.Admission{Serving: scene.Noon, Last: early}
	require.True(t, (*ledger.Admission)(nil).Same(nil))
	require.False(t, serving.Same(nil))
	require.False(t, (*ledger.Admission)(nil).Same(serving))
	require.False(t, serving.Same(asked))
	require.True(t, serving.Same(serving))
}

// TestALedgerThatIsExactlyFullForgetsNothing: a ledger that is one byte longer removes entries.
func TestALedgerThatIsExactlyFullForgetsNothing(t *testing.T) {
	for more, forgets := range map[int]bool{0: false, 1: true} {
		l := fleet(1, 1)
		l.Status.Blind = strings.Repeat("x", ledger.MostBytes-bytesOf(l.Encode())-len(`"blind":""`)+more)
		require.Equal(t, ledger.MostBytes+more, bytesOf(l.Encode()))
		_, forgotten := l.Fit()
		require.Equal(t, forgets, forgotten > 0)
	}
}

// TestOnlyAsMuchIsForgottenAsNeeded: the oldest cures and then the oldest ends are removed, until
// the rest has exactly the allowed size.
func TestOnlyAsMuchIsForgottenAsNeeded(t *testing.T) {
	ends := &ledger.Ledger{Ends: map[string][]ledger.End{}}
	for i := range 2000 {
		ends.Ends[fmt.Sprintf("m%04d", i)] = []ledger.End{{Repair: "r1", Policy: "p", At: scene.Noon}}
	}
	cures := fleet(1000, 1000)
	for name, c := range map[string]struct {
		of    *ledger.Ledger
		entry int
		left  func() int
	}{
		"cures": {cures, len(EncodeJSON(cures.Cures["civo://6b6c7c0e-5d5c-4e0b-9f7e-000000000000"][0])), func() int { return len(cures.Cures) }},
		"ends":  {ends, len(EncodeJSON(ends.Ends["m0000"][0])), func() int { return len(ends.Ends) }},
	} {
		had := c.left()
		forget := (ledger.MostBytes-ledger.FitBytes)/c.entry + 1 // as many as make it too long
		size := ledger.FitBytes + forget*c.entry
		c.of.Status.Blind = strings.Repeat("x", size-bytesOf(c.of.Encode())-len(`"blind":""`))
		require.Equal(t, size, bytesOf(c.of.Encode()), name)
		_, forgotten := c.of.Fit()
		require.Equal(t, forget, forgotten, name)
		require.Equal(t, had-forget, c.left(), name)
	}
}

// TestEachEntryHasANameForEachField: without a name in JSON, fieldsOf would not find the field.
func TestEachEntryHasANameForEachField(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type, leaf bool)
	walk = func(of reflect.Type, leaf bool) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		reads := reflect.PointerTo(of)
		itself := reads.Implements(reflect.TypeFor[json.Unmarshaler]()) || reads.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
		if of.Kind() != reflect.Struct || seen[of] || leaf && itself {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			require.False(t, f.Anonymous, "%s.%s is embedded", of, f.Name)
			require.NotEmpty(t, strings.Split(f.Tag.Get("json"), ",")[0], "%s.%s has no name in JSON", of, f.Name)
			walk(f.Type, true)
		}
	}
	for _, entry := range []any{ledger.Slot{}, ledger.Begun{}, ledger.Orphan{}, ledger.Cure{}, ledger.Span{}, ledger.RepairEnd{}, ledger.End{}, ledger.Status{}} {
		walk(reflect.TypeOf(entry), false)
	}
}

// TestAnUnknownFieldHidesNoMistake: a known field of the wrong type stays an error, and a known
// field that is null stays empty.
func TestAnUnknownFieldHidesNoMistake(t *testing.T) {
	const record = `"v":1,"id":"r1","policy":"p","cause":{"alert":"a"},"phase":"Acting","step":{"index":0,"name":"replace","attempt":1},"began":"2026-01-01T00:00:00Z","since":"2026-01-01T00:00:00Z","deadline":"2026-01-01T00:00:00Z"`
	orphans := func(fields string) string { return `[{"node":"n1","uid":"u1","record":{` + record + fields + `}}]` }
	intent := `,"intent":{"id":"r1-0-1","at":"2026-01-01T00:00:00Z"}`
	read := func(key, value string) (*ledger.Ledger, error) {
		data := (&ledger.Ledger{}).Encode()
		data[key] = value
		return ledger.Decode(data)
	}
	l, err := read(ledger.KeyOrphans, orphans(intent+`,"hold":null,"lane":1,"undo":[{"kind":"cordon","at":"2026-01-01T00:00:00Z"},{"kind":"cordon","at":"2026-01-01T00:00:00Z","lane":2}]`))
	require.NoError(t, err, "the control")
	require.Nil(t, l.Orphans[0].Record.Hold)
	require.Contains(t, l.Encode()[ledger.KeyOrphans], `"lane":2}]`, "a field of an entry of a list stays with it")
	for name, c := range map[string][2]string{
		"a struct":        {ledger.KeyOrphans, orphans(`,"intent":"x","lane":1`)},
		"a list's struct": {ledger.KeyOrphans, orphans(intent + `,"undo":["x"],"lane":1`)},
		"a list":          {ledger.KeyOrphans, orphans(intent + `,"undo":"x","lane":1`)},
		"a map's struct":  {ledger.KeyStatus, `{"breakers":{"cluster":"x","zone/a":{"state":"open","lane":1}}}`},
		"a map":           {ledger.KeyStatus, `{"breakers":"x","lane":1}`},
		"an entry":        {ledger.KeySlots, `["x"]`},
	} {
		_, err := read(c[0], c[1])
		require.ErrorIs(t, err, ledger.ErrMalformed, name)
	}
	l, err = read(ledger.KeyStatus, `{"ends":{"p":[{"repair":"r1","lane":1}]},"lane":2}`)
	require.NoError(t, err)
	require.Equal(t, ledger.Unknown(`{"lane":1}`), l.Status.Ends["p"][0].Unknown, "an entry that reads itself keeps its own")
	l, err = read(ledger.KeySlots, `[{"node":"n1","policy":"p","repair":"r1","attempt":"a","since":"2026-01-01T00:00:00Z","-":1}]`)
	require.NoError(t, err)
	require.Equal(t, []string{"slots.-"}, l.UnknownFields())
	require.Empty(t, (*ledger.Ledger)(nil).UnknownFields())
}

// TestTenUnknownFieldsAreNamed: the list then does not end in "and 0 more".
func TestTenUnknownFieldsAreNamed(t *testing.T) {
	l := &ledger.Ledger{Others: map[string]string{}}
	for _, key := range strings.Split("abcdefghij", "") {
		l.Others[key] = ""
	}
	require.Len(t, l.UnknownFields(), 10)
	l.Others["k"] = ""
	require.Equal(t, "and 1 more", l.UnknownFields()[10])
}

// TestAStatusOfANewerDrydockAloneIsWritten: the unknown fields keep their own data key, even if no
// known field is set.
func TestAStatusOfANewerDrydockAloneIsWritten(t *testing.T) {
	l := &ledger.Ledger{Status: ledger.Status{UnknownMore: `{"lane":1}`}}
	require.Equal(t, `{"lane":1}`, l.Encode()["statusMore"])
	l = &ledger.Ledger{Status: ledger.Status{Limited: []string{"why"}}}
	require.Contains(t, l.Encode()["statusMore"], "why")
	l = &ledger.Ledger{Status: ledger.Status{Limited: []string{}}}
	require.NotContains(t, l.Encode(), "statusMore")
}
