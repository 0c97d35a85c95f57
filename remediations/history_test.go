package remediations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// done are all outcomes except Observed.
var done = slices.DeleteFunc(slices.Clone(Outcomes), func(o Outcome) bool { return o == OutcomeObserved })

var anyEntry = rapid.Custom(func(t *rapid.T) Entry {
	return Entry{
		ID: scene.AnyID.Draw(t, "id"), Target: rapid.SampledFrom([]string{"", "leader", "sidecar-0a", "sidecar-0b"}).Draw(t, "target"),
		Policy: scene.AnyText.Draw(t, "policy"), Outcome: rapid.SampledFrom(done).Draw(t, "outcome"), Steps: Attempts{{Name: "reboot", Number: 1}},
		Began: scene.AnyTime.Draw(t, "began"), Ended: scene.AnyTime.Draw(t, "ended"), Why: scene.AnyText.Draw(t, "why"),
	}
})

// anyObserved is a repair that only observed.
var anyObserved = rapid.Custom(func(t *rapid.T) Entry {
	e := anyEntry.Draw(t, "entry")
	e.Outcome, e.Steps = OutcomeObserved, Attempts{}
	e.Would = &Would{Step: Attempt{Name: "reboot", Number: 1}, At: e.Began, Until: e.Ended, IllSince: e.Began}
	return e
})

// TestHistoryRemembersTenOfEachKind: many repairs of one kind of target never displace the repairs
// of another kind.
func TestHistoryRemembersTenOfEachKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text string
		all := map[Kind][]Entry{}
		for _, e := range rapid.SliceOfN(anyEntry, 1, 40).Draw(t, "entries") {
			before := DecodeHistory(text)
			text = EncodeHistory(before, e)
			kind := KindOf(e.Target)
			all[kind] = append([]Entry{e}, all[kind]...)
		}
		got := map[Kind][]Entry{}
		for _, e := range DecodeHistory(text) {
			got[KindOf(e.Target)] = append(got[KindOf(e.Target)], e)
		}
		require.Len(t, got, len(all))
		for kind, entries := range all {
			require.Equal(t, entries[:min(len(entries), MaxHistory)], got[kind], "newest first")
		}
	})
}

// TestWhatWasObservedForgetsNothingThatWasDone: Observed entries never displace entries of repairs
// that acted. The newest entries of each kind of target stay.
func TestWhatWasObservedForgetsNothingThatWasDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var with, without, alone string
		for _, e := range rapid.SliceOfN(rapid.OneOf(anyEntry, anyObserved), 1, 60).Draw(t, "entries") {
			with = EncodeHistory(DecodeHistory(with), e)
			if e.Outcome == OutcomeObserved {
				alone = EncodeHistory(DecodeHistory(alone), e)
			} else {
				without = EncodeHistory(DecodeHistory(without), e)
			}
			require.Equal(t, e.ID, DecodeHistory(with)[0].ID, "the newest comes first")
			require.LessOrEqual(t, len(with), MaxHistoryBytes+MaxObservedBytes)
		}
		var real, observed []Entry
		for _, e := range DecodeHistory(with) {
			if e.Outcome == OutcomeObserved {
				observed = append(observed, e)
			} else {
				real = append(real, e)
			}
		}
		require.Equal(t, DecodeHistory(without), real)
		require.Equal(t, DecodeHistory(alone), observed)
	})
}

func TestHistoryThatCannotBeReadIsLeftOut(t *testing.T) {
	for _, text := range []string{"", "null", "no JSON", `{"id":"x"}`, `[{"id":1}]`} {
		require.Empty(t, DecodeHistory(text), text)
	}
	require.Len(t, DecodeHistory(`[{"id":"r0","colour":"red"}]`), 1, "a later version's history is still told")
}

// TestHistoryKeepsWhatMustStillBeUndone: the history never drops an entry whose cordon is still on
// the Node. When the cordon is undone, the entry can be dropped like any other.
func TestHistoryKeepsWhatMustStillBeUndone(t *testing.T) {
	cordon := Entry{ID: "r-cordon", Policy: "p", Outcome: OutcomeCancelled, By: ByPerson, Left: []Undo{{Kind: UndoCordon}}}
	text := EncodeHistory(nil, cordon)
	more := func() {
		for i := range 2 * MaxHistory {
			text = EncodeHistory(DecodeHistory(text), Entry{ID: fmt.Sprintf("r%d", i), Policy: "p", Outcome: OutcomeCancelled, By: ByPerson, Why: strings.Repeat("x", 1024)})
		}
	}
	left := func(e Entry) bool { return e.ID == cordon.ID }
	more()
	require.True(t, slices.ContainsFunc(DecodeHistory(text), left))
	var ok bool
	text, ok = HistoryLeaving(DecodeHistory(text), cordon.ID, nil)
	require.True(t, ok)
	more()
	require.False(t, slices.ContainsFunc(DecodeHistory(text), left))
}

// TestHistoryIsBounded: even with long messages the history leaves room for the other annotations
// of a Node.
func TestHistoryIsBounded(t *testing.T) {
	for name, why := range map[string]string{"plain": strings.Repeat("x", 300), "nothing but escapes": strings.Repeat("\x00", 1024)} {
		t.Run(name, func(t *testing.T) {
			var text string
			for i := range 100 {
				e := Entry{ID: fmt.Sprintf("r%d", i), Target: []string{"", "leader", "sidecar-0a"}[i%3], Policy: "p", Why: why}
				text = EncodeHistory(DecodeHistory(text), e)
				require.LessOrEqual(t, len(text), MaxHistoryBytes)
				require.Equal(t, e.ID, DecodeHistory(text)[0].ID, "the newest is never what is forgotten")
			}
			require.LessOrEqual(t, len(DecodeHistory(text)), 3*MaxHistory)
		})
	}
}
