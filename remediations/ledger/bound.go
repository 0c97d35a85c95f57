package ledger

import (
	"cmp"
	"slices"

	"drydock.dev/drydock/remediations"
)

// MostBytes bounds the values of the ConfigMap. The API server refuses more than 1 MiB. The rest is
// for the arrival, which each replica writes by itself.
const MostBytes = 1<<20 - 1<<10

// GlassMost bounds the nodes with a recorded time since break-glass was set. A person may set it on
// all nodes at once.
const BreakGlassMost = 1000

// fitBytes is how many bytes Fit keeps when it forgets something. This leaves room for the next
// writes, so that not each of them forgets.
const fitBytes = MostBytes - MostBytes/16

// Room returns for how many bytes of ends of repairs a ledger with this data has room. With more,
// Fit would forget existing entries.
func Room(data map[string]string) int { return fitBytes - bytesIn(data) }

func bytesIn(data map[string]string) (size int) {
	for _, value := range data {
		size += len(value)
	}
	return size
}

// Fit returns the ConfigMap's data, like Encode. If the data is too long, it first forgets the
// oldest cures, then the oldest ends and cancels, and returns how many. A Node has its own, so only
// a Node that is registered again loses something. Slots, orphans and counted repairs are never
// forgotten. If these alone are too long, the API server refuses the write, and no repair begins.
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

// forgetEnds forgets the oldest ends and cancels, until data of that size has room for the next
// writes.
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
