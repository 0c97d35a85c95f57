package ledger

import (
	"cmp"
	"slices"

	"drydock.dev/drydock/remediations"
)

// MostBytes bounds the ConfigMap's values: the API server refuses more than 1 MiB. The difference
// leaves room for KeyArrival, which each replica writes.
const MostBytes = 1<<20 - 1<<10

// BreakGlassMost bounds Status.BreakGlass, because a person may set break-glass on all nodes.
const BreakGlassMost = 1000

// fitBytes is smaller than MostBytes, so that the next few writes need not remove entries again.
const fitBytes = MostBytes - MostBytes/16

// Room returns how many bytes about ended repairs can be added before Fit may remove entries.
func Room(data map[string]string) int { return fitBytes - bytesIn(data) }

func bytesIn(data map[string]string) (size int) {
	for _, value := range data {
		size += len(value)
	}
	return size
}

// Fit returns the ConfigMap's data, like Encode. If it is too long, Fit first removes the oldest
// entries of Cures, then of Ends, and returns how many. The Node's annotations have these facts,
// too, so they are lost only if the Node is deleted and registers again.
//
// Fit never removes slots, orphans and the repairs begun on each machine. If these alone are too
// long, the API server refuses the write, and no repair begins.
func (l *Ledger) Fit() (data map[string]string, forgotten int) {
	data = l.Encode()
	size := bytesIn(data)
	if size <= MostBytes {
		return data, 0
	}
	type known struct {
		machine string
		cure    Cure
	}
	var all []known
	for machine, cures := range l.Cures {
		for _, c := range cures {
			all = append(all, known{machine, c})
		}
	}
	slices.SortFunc(all, func(a, b known) int { return cmp.Or(a.cure.At.Compare(b.cure.At), cmp.Compare(a.machine, b.machine)) })
	for _, k := range all {
		if size <= fitBytes {
			break
		}
		l.cures(k.machine, slices.DeleteFunc(slices.Clone(l.Cures[k.machine]), func(c Cure) bool { return c.Repair == k.cure.Repair }))
		size -= len(remediations.EncodeJSON(k.cure))
		forgotten++
	}
	forgotten += l.forgetEnds(size)
	return l.Encode(), forgotten
}

// forgetEnds takes the present size in bytes, and returns how many entries it has removed.
func (l *Ledger) forgetEnds(size int) (forgotten int) {
	type known struct {
		machine string
		end     End
	}
	var all []known
	for machine, ends := range l.Ends {
		for _, e := range ends {
			all = append(all, known{machine, e})
		}
	}
	slices.SortFunc(all, func(a, b known) int {
		return cmp.Or(a.end.since().Compare(b.end.since()), cmp.Compare(a.machine, b.machine))
	})
	for _, k := range all {
		if size <= fitBytes {
			break
		}
		l.setEnds(k.machine, slices.DeleteFunc(slices.Clone(l.Ends[k.machine]), func(e End) bool { return e == k.end }))
		size -= len(remediations.EncodeJSON(k.end))
		forgotten++
	}
	return forgotten
}
