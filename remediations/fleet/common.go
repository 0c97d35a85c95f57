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

// Onsets has when alerts about nodes began to fire, by policy and node.
type Onsets map[string]map[string]time.Time

// Add records when an alert of the policy became active. The earliest counts. Policies whose
// witness reads Ready, the lease or the provider are ignored, because the breaker already counts
// their nodes.
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

// ofBreaker reports whether a node with this sign already counts for the circuit breaker.
func ofBreaker(s signs.Sign) bool {
	return s.Kind == signs.NotReady || s.Kind == signs.StaleLease || s.Kind == signs.NotRunning
}

// alike are nodes whose alerts of one policy began so close together that they probably have one
// cause.
type alike struct {
	key   string // identifies the group among the groups of all policies
	count int
	names string
}

// maxNames is in bytes.
const maxNames = 200

// Begin stores the alerts of the last poll, and groups the nodes that probably have one cause.
func (r *Roster) Begin(onsets Onsets) {
	r.alike = map[string]map[string]*alike{}
	for policy, since := range onsets {
		r.alike[policy] = r.group(policy, since)
	}
}

// group returns the group of each node that has one. A group has at least limits.commonCause.nodes
// nodes within limits.commonCause.within. Overlapping groups become one.
func (r *Roster) group(policy string, since map[string]time.Time) (out map[string]*alike) {
	limit := r.config.Limits.CommonCause
	if limit.Nodes == 0 {
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
		end := begin // the end of the group that starts at begin
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

// tried is where the policy tries its repair first. If failed is true, that did not cure the node.
// node may be empty.
type tried struct {
	node   string
	failed bool
}

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

// Begin gives the onsets to the roster, and looks again for the nodes that were tried, because the
// groups have changed.
func (f *Fleet) Begin(onsets Onsets) {
	f.roster.Begin(onsets)
	f.tried = f.roster.trials()
}

// Common is a fault that several nodes share, according to the alerts of one policy.
type Common struct {
	Count int
	// Names has some of these nodes, on one line.
	Names string
	// Tried is the node that the policy repairs now or, if Failed is true, has repaired without a
	// cure. It may be empty.
	Tried  string
	Failed bool
}

// Common returns the fault that the node shares with others, or nil.
func (f *Fleet) Common(policy, node string) *Common {
	of := f.roster.alike[policy]
	g := of[node]
	if g == nil {
		return nil
	}
	was := f.tried[g.key]
	for name, place := range f.occupied { // repairs that this pass has begun are not in the Nodes' records yet
		m := f.roster.members[name]
		if was.node == "" && of[name] == g && !place.wouldBe && !place.parked && (m.own == nil || m.own.Policy == policy) {
			was.node = name
		}
	}
	return &Common{Count: g.count, Names: g.names, Tried: was.node, Failed: was.failed}
}
