package remediations

import (
	"slices"
	"time"
)

// roomOfAnEntry is more than any entry needs: a history with so much room left has dropped none for its size.
const roomOfAnEntry = 2 << 10

// RemembersSince says since when the history lacks no repair that ended: the end of the oldest entry of a part of it that is full;
// zero: it is full nowhere.
func RemembersSince(entries []Entry) (since time.Time) {
	since = remembersSince(entries, func(e Entry) bool { return e.Outcome != Observed }, maxHistoryBytes)
	if observed := remembersSince(entries, func(e Entry) bool { return e.Outcome == Observed }, maxObservedBytes); observed.After(since) {
		since = observed
	}
	return since
}

func remembersSince(entries []Entry, of func(Entry) bool, most int) (since time.Time) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !of(e) })
	byKind := map[Kind][]Entry{}
	for _, e := range entries {
		byKind[KindOf(e.Target)] = append(byKind[KindOf(e.Target)], e)
	}
	full := len(EncodeJSON(entries)) > most-roomOfAnEntry
	for _, of := range byKind {
		oldest := slices.MinFunc(of, func(a, b Entry) int { return a.Ended.Compare(b.Ended) }).Ended
		if (full || len(of) >= maxHistory) && oldest.After(since) {
			since = oldest
		}
	}
	return since
}
