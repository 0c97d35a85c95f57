package backtest

import (
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/remediations/lifecycle"
)

// timeline is what held each node, and when.
type timeline map[string][]span

// span is a time during one hold of a node. until is zero while it lasts.
type span struct {
	hold        string
	from, until time.Time
}

// decided takes a decision about a node.
func (t timeline) decided(now time.Time, node string, d lifecycle.Decision) {
	if d.Verb == lifecycle.VerbLook {
		return // it only looks once more
	}
	hold := ""
	if d.Verb == lifecycle.VerbHold {
		if hold = string(d.Reason); d.Policy != nil {
			hold += " of " + d.Policy.Name
		}
	}
	all := t[node]
	if last := len(all) - 1; last >= 0 && all[last].until.IsZero() {
		if all[last].hold == hold {
			return
		}
		all[last].until = now
	}
	if hold != "" {
		t[node] = append(all, span{hold: hold, from: now})
	}
}

// at returns what holds the node at that time, or "" if nothing does.
func (t timeline) at(node string, now time.Time) string {
	for _, s := range t[node] {
		if !s.from.After(now) && (s.until.IsZero() || s.until.After(now)) {
			return s.hold
		}
	}
	return ""
}

// edges are when something about the node changes until then.
func (t timeline) edges(node string, until time.Time) (out []time.Time) {
	for _, s := range t[node] {
		if out = append(out, s.from); s.until.IsZero() {
			out = append(out, until)
		} else {
			out = append(out, s.until)
		}
	}
	return out
}

// aLook is how long a hold may begin or end sooner in one of the two: two looks at Alertmanager.
// When those are, no record says.
const aLook = 30 * time.Second

// heldOtherwise is a time when the two held a node for different reasons. An empty reason: not
// held.
type heldOtherwise struct {
	node           string
	live, replayed string
	from, until    time.Time
}

// heldOtherwise compares the timeline of what was lived with that of a replay.
func (t timeline) heldOtherwise(replayed timeline, until time.Time) (out []heldOtherwise) {
	nodes := maps.Clone(t)
	maps.Copy(nodes, replayed)
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		edges := append(t.edges(node, until), replayed.edges(node, until)...)
		slices.SortFunc(edges, time.Time.Compare)
		var all []heldOtherwise
		for i, from := range edges[:len(edges)-1] {
			h := heldOtherwise{node, t.at(node, from), replayed.at(node, from), from, edges[i+1]}
			last := len(all) - 1
			switch {
			case h.live == h.replayed || h.from.Equal(h.until):
			case last >= 0 && all[last].until.Equal(h.from) && all[last].live == h.live && all[last].replayed == h.replayed:
				all[last].until = h.until
			default:
				all = append(all, h)
			}
		}
		for _, h := range all {
			if h.until.Sub(h.from) > aLook {
				out = append(out, h)
			}
		}
	}
	return out
}
