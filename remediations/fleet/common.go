package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// Onsets are, by policy and node, since when alerts fire that tell of a condition of the node.
type Onsets map[string]map[string]time.Time

// Add takes an alert that fires. Where the policy's witness looks at Ready, at the lease or at the provider, the breaker counts the node.
func (o Onsets) Add(p *remediations.Policy, node string, at time.Time) {
	if p.Witness == nil || len(p.Witness.Signs) == 0 || slices.ContainsFunc(p.Witness.Signs, ofBreaker) {
		return
	}
	if o[p.Name] == nil {
		o[p.Name] = map[string]time.Time{}
	}
	if was, ok := o[p.Name][node]; !ok || at.Before(was) {
		o[p.Name][node] = at
	}
}

func ofBreaker(s signs.Sign) bool {
	return s.Kind == signs.NotReady || s.Kind == signs.StaleLease || s.Kind == signs.NotRunning
}

// alike are nodes whose alerts of one policy began so close together that they are one fault.
type alike struct {
	key   string // names the group among those of all policies
	count int
	names string
}

// maxNames bounds the names of the nodes that a message lists, in bytes.
const maxNames = 200

// Begin takes the onsets of the last poll, and finds the faults that nodes have together.
func (r *Roster) Begin(onsets Onsets) {
	r.alike = map[string]map[string]*alike{}
	for policy, since := range onsets {
		if of := r.group(policy, since); of != nil {
			r.alike[policy] = of
		}
	}
}

// group finds the nodes of which limits.commonCause.nodes or more alerts began within its time. Such groups that overlap are one.
func (r *Roster) group(policy string, since map[string]time.Time) (out map[string]*alike) {
	limit := r.config.Limits.CommonCause
	if limit.Nodes == 0 || len(since) < limit.Nodes {
		return nil
	}
	var nodes []string
	for name := range since {
		if m := r.members[name]; m != nil && !m.excluded {
			nodes = append(nodes, name)
		}
	}
	slices.SortFunc(nodes, func(a, b string) int { return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a, b)) })
	for begin := 0; begin+limit.Nodes <= len(nodes); {
		end := begin // behind the group that begins here
		for i := begin; i+limit.Nodes <= len(nodes) && (i == begin || i < end); i++ {
			if last := i + limit.Nodes; since[nodes[last-1]].Sub(since[nodes[i]]) <= limit.Within {
				end = last
			}
		}
		if end == begin {
			begin++
			continue
		}
		if out == nil {
			out = map[string]*alike{}
		}
		g := &alike{key: policy + "/" + nodes[begin], count: end - begin, names: text.Line(strings.Join(nodes[begin:min(end, begin+maxNames)], ", "), maxNames)}
		for ; begin < end; begin++ {
			out[nodes[begin]] = g
		}
	}
	return out
}

// tried is the node of such a group that the policy repairs or, failed, has repaired in vain; empty: there is none by the records.
type tried struct {
	node   string
	failed bool
}

// trials looks through the records of all nodes that have a fault together with others.
func (r *Roster) trials() map[string]tried {
	out := map[string]tried{}
	for policy, of := range r.alike {
		for name, g := range of {
			m := r.members[name]
			if m == nil || m.own == nil || m.own.Policy != policy || out[g.key].failed {
				continue
			}
			if m.exhausted {
				out[g.key] = tried{name, true}
			} else if m.own.Intent != nil && !m.held() && (out[g.key].node == "" || name < out[g.key].node) {
				out[g.key] = tried{name, false}
			}
		}
	}
	return out
}

// Begin is the roster's, for a fleet that was counted by New.
func (f *Fleet) Begin(onsets Onsets) {
	f.roster.Begin(onsets)
	f.tried = f.roster.trials()
}

// Common is a fault that a node has together with others.
type Common struct {
	Count int
	// Names are some of the nodes, as one line.
	Names string
	// Tried is the node that the policy repairs, or has repaired in vain; empty: there is none. Failed: it has.
	Tried  string
	Failed bool
}

// Common is the fault that the node has by the policy's alert together with others; nil: it is a fault of its own.
func (f *Fleet) Common(policy, node string) *Common {
	of := f.roster.alike[policy]
	g := of[node]
	if g == nil {
		return nil
	}
	was := f.tried[g.key]
	for name, place := range f.occupied { // what this pass has begun is in no record yet
		m := f.roster.members[name]
		if was.node == "" && of[name] == g && !place.wouldBe && !place.parked && (m.own == nil || m.own.Policy == policy) {
			was.node = name
		}
	}
	return &Common{Count: g.count, Names: g.names, Tried: was.node, Failed: was.failed}
}
