package ledger_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/remediations/testing/scene"
)

// wholeLedger returns a ledger with each part and each kind of entry.
func wholeLedger() *ledger.Ledger {
	begun := []ledger.Begun{{Repair: "r1", At: scene.Noon}, {Repair: "r2", At: scene.Noon}}
	r := ReadJournal(scene.InFlight(scene.Bare("n2"), "reboot")).Record
	return &ledger.Ledger{
		Slots:   []ledger.Slot{{Node: "n1", Repair: "r1", Since: scene.Noon}, {Kind: "later", Node: "n2", Repair: "r2", Since: scene.Noon}},
		Repairs: map[string][]ledger.Begun{"m1": begun, "m2": begun}, Moves: map[string][]ledger.Begun{"eu": begun}, Wide: begun,
		Orphans: []ledger.Orphan{{Node: "n2", UID: "uid-2", Record: *r}},
		Cures:   map[string][]ledger.Cure{"m1": {{Repair: "r1", Policy: "p", At: scene.Noon, Step: StepRef{Name: "reboot", Attempt: 1}, Steps: Attempts{{Name: "reboot", Number: 1}}}}},
		Unseen:  []ledger.Span{{From: scene.Noon}}, Ends: map[string][]ledger.End{"m1": {{Repair: "r1", Policy: "p", At: scene.Noon}}}, Arrival: scene.Noon,
		Status: ledger.Status{
			Mode: "enforce", Breakers: map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen}}, BreakGlass: map[string]ledger.BreakGlass{"n1": {Since: scene.Noon, Why: "<&>"}},
			Ends: map[string][]ledger.RepairEnd{"p": {{Repair: "r1", Failed: true}, {Repair: "r2"}}}, WentBack: &ledger.WentBack{Why: "w"},
			SelfTest: selftest.Result{State: selftest.OK, Since: scene.Noon}, Admission: &ledger.Admission{Serving: scene.Noon},
		},
	}
}

// objects are the paths of objects in each part of the ledger. * stands for each key of a map or
// each entry of a list.
var objects = map[string][][]string{
	"slots": {{"*"}}, "repairs": {{"*", "*"}}, "moves": {{"*", "*"}}, "wide": {{"*"}}, "cures": {{"*", "*"}, {"*", "*", "step"}}, "unseen": {{"*"}}, "ends": {{"*", "*"}},
	"orphans":    {{"*"}, {"*", "record"}, {"*", "record", "intent"}, {"*", "record", "step"}},
	"status":     {{}, {"breakers", "*"}, {"breakGlass", "*"}, {"ends", "*", "*"}, {"selfTest"}},
	"statusMore": {{}, {"wentBack"}, {"admission"}},
}

func visit(v any, path []string, f func(map[string]any)) {
	if len(path) == 0 {
		if object, is := v.(map[string]any); is {
			f(object)
		}
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, in := range v {
			if path[0] == "*" || path[0] == name {
				visit(in, path[1:], f)
			}
		}
	case []any:
		for _, in := range v {
			visit(in, path[1:], f)
		}
	}
}

// TestUnknownFieldsAreKept: decoding and encoding keeps every field that a newer Drydock added, at
// any depth, and changes no known field.
func TestUnknownFieldsAreKept(t *testing.T) {
	value := rapid.SampledFrom([]string{`1`, `1.0`, `12345678901234567890123`, `"<&>"`, `null`, `[]`, `{}`, `{"a":[{"node":"n9"}],"b":"\u00e9"}`, `true`, `""`})
	name := rapid.SampledFrom([]string{"lane", "newer", "x-1", "0", "node2", "unknown"})
	rapid.Check(t, func(t *rapid.T) {
		data := wholeLedger().Encode()
		added := 0
		for part, paths := range objects {
			var v any
			require.NoError(t, json.Unmarshal([]byte(data[part]), &v))
			for _, path := range paths {
				found := false
				visit(v, path, func(object map[string]any) {
					found = true
					for range rapid.IntRange(0, 2).Draw(t, "fields") {
						object[name.Draw(t, "name")] = json.RawMessage(value.Draw(t, "value"))
						added++
					}
				})
				require.True(t, found, "%s %s: nothing is there", part, path)
			}
			data[part] = EncodeJSON(v)
		}
		if rapid.Bool().Draw(t, "key") {
			data["later"], added = "not JSON {", added+1
		}
		l, err := ledger.Decode(data)
		require.NoError(t, err)
		require.Equal(t, added > 0, len(l.UnknownFields()) > 0)
		for _, of := range []*ledger.Ledger{l, l.Clone()} {
			again := of.Encode()
			require.Len(t, again, len(data))
			for key, was := range data {
				if key == "later" || key == ledger.KeyVersion || key == ledger.KeyArrival {
					require.Equal(t, was, again[key])
				} else {
					require.Equal(t, ordered(t, was), ordered(t, again[key]), key)
				}
			}
		}
	})
}

// ordered returns the JSON with the names of each object sorted, and each number as written.
func ordered(t require.TestingT, text string) string {
	var raw json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &raw))
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		for name, in := range object {
			object[name] = json.RawMessage(ordered(t, string(in)))
		}
		return EncodeJSON(object)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && list != nil {
		for i, in := range list {
			list[i] = json.RawMessage(ordered(t, string(in)))
		}
		return EncodeJSON(list)
	}
	return text
}

// TestUnknownFieldsStayWithTheirEntry: this holds while other entries are added and removed, and
// while the status is written again.
func TestUnknownFieldsStayWithTheirEntry(t *testing.T) {
	data := (&ledger.Ledger{}).Encode()
	data[ledger.KeySlots] = `[{"node":"n1","policy":"p","repair":"r1","attempt":"a","since":"2026-01-01T00:00:00Z"},{"node":"n2","policy":"p","repair":"r2","attempt":"a","since":"2026-01-01T00:00:00Z","lane":1.0}]`
	data[ledger.KeyStatus] = `{"breakers":{"cluster":{"state":"open","since":"2026-01-01T00:00:00Z","unhealthy":1,"nodes":2,"quiet":"2026-01-01T00:00:00Z","share":3}}}`
	l, err := ledger.Decode(data)
	require.NoError(t, err)
	require.Equal(t, []string{"slots.lane", "status.breakers"}, l.UnknownFields())
	l.Release("r1")
	l.Slots = append(l.Slots, ledger.Slot{Node: "n3", Repair: "r3", Since: scene.Noon})
	again := l.Encode()
	require.Contains(t, again[ledger.KeySlots], `"lane":1.0`)
	read, err := ledger.Decode(again)
	require.NoError(t, err)
	require.Equal(t, `{"lane":1.0}`, string(read.Slots[0].Unknown))
	require.Empty(t, read.Slots[1].Unknown)
	require.Contains(t, again[ledger.KeyStatus], `"share":3`)
	delete(l.Status.Breakers, "cluster")
	require.NotContains(t, l.Encode()[ledger.KeyStatus], `"share":3`, "what it was about is gone")
}

// TestUnknownFieldsAreNamedBriefly: the names must fit into a log line and a status line.
func TestUnknownFieldsAreNamedBriefly(t *testing.T) {
	l := &ledger.Ledger{Others: map[string]string{}}
	require.Empty(t, l.UnknownFields())
	for i := range 30 {
		l.Others[fmt.Sprintf("k%02d%0200d", i, 0)] = ""
	}
	names := l.UnknownFields()
	require.Len(t, names, 11)
	require.Equal(t, "and 20 more", names[10])
	require.LessOrEqual(t, len(names[0]), 90)
}

// TestUnknownFieldsOutliveTheirEntrysNextVersion: every update of an entry keeps them, for example
// the slot of a repair's next attempt. An entry about another repair does not get them.
func TestUnknownFieldsOutliveTheirEntrysNextVersion(t *testing.T) {
	c := endsConfig()
	n, newer := nodeOf("u1", "civo://1"), ledger.Unknown(`{"newer":1}`)
	reserve := func(l *ledger.Ledger, id string) {
		l.Reserve(c, n, &Record{ID: id, Policy: "p", Intent: &Intent{ID: id + "-0-2"}, Step: StepRef{Name: "replace", Attempt: 2}}, scene.Noon)
	}
	cancel := func(id string, seen time.Duration) ledger.End {
		return ledger.CancelOf(Alert{Fingerprint: "a", Policy: "p"}, CancelledRepair{ID: id, At: scene.Noon}, scene.Noon.Add(seen))
	}
	reboot := StepRef{Name: "reboot", Attempt: 1}
	for name, of := range map[string]struct {
		write   func(l *ledger.Ledger, id string)
		unknown func(l *ledger.Ledger) *ledger.Unknown
	}{
		"a slot":    {reserve, func(l *ledger.Ledger) *ledger.Unknown { return &l.Slots[0].Unknown }},
		"an orphan": {reserve, func(l *ledger.Ledger) *ledger.Unknown { return &l.Orphans[len(l.Orphans)-1].Unknown }},
		"a leader's slot": {func(l *ledger.Ledger, id string) {
			l.Reserve(c, n, &Record{ID: id, Location: "eu", Intent: &Intent{ID: id + "-0-2"}}, scene.Noon)
		}, func(l *ledger.Ledger) *ledger.Unknown { return &l.Slots[0].Unknown }},
		"a cancel": {func(l *ledger.Ledger, id string) { l.Ended(c, n, cancel(id, 13*time.Hour), scene.Noon) }, func(l *ledger.Ledger) *ledger.Unknown { return &l.Ends["civo://1"][0].Unknown }},
		"a cure": {func(l *ledger.Ledger, id string) {
			l.Cured("m1", &Entry{ID: id, Policy: "p", Outcome: OutcomeRecovered, Ended: scene.Noon, Steps: Attempts{reboot.Issued()}, Last: &reboot}, nil)
		}, func(l *ledger.Ledger) *ledger.Unknown { return &l.Cures["m1"][0].Unknown }},
	} {
		l := &ledger.Ledger{Repairs: map[string][]ledger.Begun{}}
		of.write(l, "r1")
		*of.unknown(l) = newer
		of.write(l, "r1")
		require.Equal(t, newer, *of.unknown(l), name)
		of.write(l, "r2")
		require.Empty(t, *of.unknown(l), name)
	}
}
