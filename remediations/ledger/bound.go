package ledger

import (
	"cmp"
	"slices"

	"drydock.dev/drydock/remediations"
)

// MostBytes bounds the values of the ConfigMap. The API server refuses more than 1 MiB; the rest is for the arrival, which each replica
// writes by itself.
const MostBytes = 1<<20 - 1<<10

// GlassMost bounds the nodes of which the ledger remembers since when break-glass is set. A person may set it on all nodes at once.
const GlassMost = 1000

// fitBytes is how many bytes Fit keeps where it forgets something: there is room for the next writes, so that not each of them forgets.
const fitBytes = MostBytes - MostBytes/16

// Room is for how many bytes of ends of repairs a ledger with this data has room. More of them would make Fit forget what stands in it.
func Room(data map[string]string) int { return fitBytes - bytesIn(data) }

func bytesIn(data map[string]string) (size int) {
	for _, value := range data {
		size += len(value)
	}
	return size
}

// Fit gives the ConfigMap's data, as Encode does. Where they are too long, it first forgets the oldest cures, then the oldest
// ends and cancels, and says how many. A Node remembers its own, so only a Node that is registered again loses something. Slots, orphans and counted repairs are never
// forgotten: if these alone are too long, the API server refuses the write, and no repair begins.
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

// forgetEnds forgets the oldest ends and cancels, until what takes that many bytes has room for the next writes.
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
