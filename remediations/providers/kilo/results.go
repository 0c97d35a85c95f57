package kilo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// probeMetric is 1 if both messages of the probe were answered over a new flow, and 0 otherwise.
const probeMetric = "drydock_mesh_probe_success"

// results are about one location. Times are by Prometheus' clock. Names and locations of nodes are
// taken from the Nodes.
type results struct {
	// local has the members' results about each other within maxAge, by probing node and then by
	// probed node.
	local  map[string]map[string]result
	maxAge time.Duration
	pairs  bool
	// cross has other locations' results about the members, by probed node and then by the probing
	// nodes' location. They are not older than freshFor.
	cross map[string]map[string]tally
}

type pair struct{ src, dst string }

type result struct {
	good bool // the last probe of each protocol succeeded
	// failing is the share of failed probes, the larger one if the protocols differ.
	failing float64
}

func (w result) suspicious() bool { return !w.good || w.failing > failingShare }

type tally struct{ good, bad int }

// account counts one node's probes of another node over one protocol: bad of them failed.
type account struct {
	last    model.Time
	good    bool
	bad, of int
}

// The indexes are those of protocols.
type accounts [2]account

// The agents write these values of the label proto.
var protocols = []string{"tcp", "udp"}

// reader collects the samples by pair of nodes and protocol. The probing node is taken from the
// label node, which Prometheus sets. The probing node's location is taken from its Node. The labels
// src_node and src_location are not trusted: an agent writes them itself, and must not speak for
// another node.
//
// The labels also contain the nodes' roles, which change with the leader. So the results of one
// pair may be in several series, and the newest sample counts.
type reader struct {
	location string
	// local selects the results of the location's nodes about each other, and not those of other
	// locations.
	local bool
	// Samples about nodes that do not exist are ignored, so that they cannot fill the memory.
	nodes    map[string]*election.Node
	accounts map[pair]*accounts
	series   int
}

func newReader(v view, location string, local bool) *reader {
	e := &reader{location: location, local: local, nodes: make(map[string]*election.Node, len(v)), accounts: map[pair]*accounts{}}
	for i := range v {
		e.nodes[v[i].Name] = &v[i].Node
	}
	return e
}

func (e *reader) read(series *model.SampleStream) error {
	if e.series++; e.series > maxSeries {
		return fmt.Errorf("%w: the answer has more than %d series", bounded.ErrTooLarge, maxSeries)
	}
	if series == nil {
		return nil
	}
	src, dst := e.nodes[string(series.Metric["node"])], e.nodes[string(series.Metric["dst_node"])]
	proto := slices.Index(protocols, string(series.Metric["proto"]))
	if src == nil || dst == nil || src == dst || proto < 0 || dst.Location != e.location || (src.Location == e.location) != e.local {
		return nil
	}
	p := pair{src.Name, dst.Name}
	said := e.accounts[p]
	if said == nil {
		said = &accounts{}
	}
	s := &said[proto]
	for _, v := range series.Values {
		if v.Value != 0 && v.Value != 1 {
			continue // agents write only 0 and 1
		}
		s.of++
		if v.Value == 0 {
			s.bad++
		}
		if s.of == 1 || v.Timestamp > s.last {
			s.last, s.good = v.Timestamp, v.Value == 1
		}
	}
	if s.of > 0 {
		e.accounts[p] = said
	}
	return nil
}

func newResults(local, cross *reader, maxAge time.Duration) results {
	w := results{local: map[string]map[string]result{}, maxAge: maxAge, cross: map[string]map[string]tally{}}
	for p, said := range local.accounts {
		one := result{good: true}
		for _, s := range said {
			if s.of > 0 {
				one.good = one.good && s.good
				one.failing = max(one.failing, float64(s.bad)/float64(s.of))
			}
		}
		if w.local[p.src] == nil {
			w.local[p.src] = map[string]result{}
		}
		w.local[p.src][p.dst] = one
	}
	// An agent exports all its present results in each scrape. So a result that is older than the
	// agent's newest one is no longer exported. It belongs to an earlier state of the mesh.
	newest := map[string]model.Time{}
	for p, said := range cross.accounts {
		for _, s := range said {
			newest[p.src] = max(newest[p.src], s.last)
		}
	}
	for p, said := range cross.accounts {
		from := cross.nodes[p.src].Location
		for _, s := range said {
			if s.of == 0 || s.last < newest[p.src] {
				continue
			}
			if w.cross[p.dst] == nil {
				w.cross[p.dst] = map[string]tally{}
			}
			t := w.cross[p.dst][from]
			if s.good {
				t.good++
			} else {
				t.bad++
			}
			w.cross[p.dst][from] = t
		}
	}
	return w
}

// suspects are the present leader, and the nodes under repair, because they led before. Probes by a
// suspect do not count, and neither do failed probes of a suspect.
func suspects(members []member, leader string) map[string]bool {
	out := map[string]bool{leader: true}
	for _, k := range members {
		if k.repair != "" {
			out[k.Name] = true
		}
	}
	return out
}

// accusers returns the other members whose last probe of a member failed. If lately is true, many
// failed probes within MaxAge also count. Probes by ignored nodes do not count.
func (w results) accusers(members []member, ignored map[string]bool, lately bool) map[string][]string {
	known := map[string]bool{}
	for _, k := range members {
		known[k.Name] = true
	}
	out := map[string][]string{}
	for src, about := range w.local {
		for dst, said := range about {
			if known[src] && known[dst] && !ignored[src] && (!said.good || (lately && said.suspicious())) {
				out[dst] = append(out[dst], src)
			}
		}
	}
	return out
}

// candidate returns why the probe results forbid the member to become the new leader. why is empty
// if they allow it. ties is the number of siblings that the member reaches. known is false if the
// results do not show whether the member can send.
//
// A failed probe of a suspect proves nothing, because either end may have lost it. A successful
// probe of any node proves that the member can send, because the signed answer came back. So if all
// siblings are under repair, a successful probe of the leader is enough. This happens in a location
// of three nodes whose first successor was faulty as well. If there are siblings that could be
// probed, a success with the leader alone is not enough.
//
// What suspects report about the member is not used. Such a report would prove only that the member
// can answer, not that it can send.
func (w results) candidate(name, leader string, members []member, accusers map[string][]string) (ties int, known bool, why string) {
	if len(members) == 2 {
		return w.onlyMember(name, leader)
	}
	if by := accusers[name]; len(by) >= suspectBy {
		return 0, true, fmt.Sprintf("it may be faulty itself: in the last %s, %s did not reach it", text.Duration(w.maxAge), named(by, ", "))
	}
	var unreached, repaired []string
	last := true // no sibling is left to judge by, only the leader
	for _, k := range members {
		if k.Name == name || k.Name == leader {
			continue
		}
		said, asked := w.local[name][k.Name]
		if k.repair != "" {
			repaired = append(repaired, k.Name)
		} else {
			last = false
		}
		switch {
		case !asked || (k.repair == "" && len(accusers[k.Name]) >= suspectBy):
		case said.good:
			ties++
		case k.repair == "":
			unreached = append(unreached, k.Name)
		}
	}
	said, asked := w.local[name][leader]
	last = last && len(repaired) > 0 && asked
	switch {
	case len(unreached) > 0:
		return 0, true, "it does not reach its siblings " + named(unreached, ", ")
	case ties > 0:
		return ties, true, ""
	case last && said.good:
		return 1, true, ""
	case last:
		return 0, true, fmt.Sprintf("it does not reach the leader %s, and its siblings are under repair: %s", leader, named(repaired, ", "))
	}
	return 0, false, fmt.Sprintf("its agent reached no other member than the leader in the last %s", text.Duration(w.maxAge))
}

// onlyMember is candidate for a location of two nodes: name is the only member besides the leader.
// No third node can show which of the two is faulty.
//
// Two probes must have succeeded. The member's last probe of the leader proves that the member can
// send. If Prometheus is in another location, that probe is from before the fault. The leader's
// last probe of the member, which Prometheus still has, must have succeeded as well. If one of the
// two probes failed, the path between the two nodes is faulty. A new leader would then not reach
// the old one, and the move could only be undone.
func (w results) onlyMember(name, leader string) (ties int, known bool, why string) {
	if !w.pairs {
		return 0, true, "in a location of two nodes it is unknown which of them is faulty; set providers.kilo.pairs: true to allow the move"
	}
	to, asked := w.local[name][leader]
	back, answered := w.local[leader][name]
	switch {
	case asked && !to.good:
		return 0, true, fmt.Sprintf("it does not reach the leader %s: the path between the two nodes is faulty, so a move would not help", leader)
	case answered && !back.good:
		return 0, true, fmt.Sprintf("the leader %s does not reach it: the path between the two nodes is faulty, so a move would not help", leader)
	case !asked:
		return 0, false, fmt.Sprintf("Prometheus has no probe from it to the leader %s in the last %s", leader, text.Duration(w.maxAge))
	case !answered:
		return 0, false, fmt.Sprintf("Prometheus has no probe from the leader %s to it in the last %s", leader, text.Duration(w.maxAge))
	}
	return 1, true, ""
}

// reached leaves out a member that its siblings do not reach either: it is faulty itself, and shows
// nothing about the leader. A member counts as unreached only if most of the other locations do not
// reach it, because one location may be cut off itself. known is false if no other location has a
// result about any other member.
func (w results) reached(members []member, leader string) (ok, known bool, why string) {
	accusers := w.accusers(members, nil, false)
	judged, unreached := 0, []string{}
	known = len(members) == 1
	for _, k := range members {
		by := w.cross[k.Name]
		known = known || (k.Name != leader && len(by) > 0)
		if k.Name == leader || len(by) == 0 || len(accusers[k.Name]) >= suspectBy {
			continue
		}
		judged++
		var not []string
		for _, from := range slices.Sorted(maps.Keys(by)) {
			if by[from].good <= by[from].bad {
				not = append(not, clip(from))
			}
		}
		// If half of the locations reach the member, the member counts as reached. There may be
		// only two other locations, and one of them may be cut off itself. A stricter rule could
		// then never prove that this location is reached.
		if len(not)*2 > len(by) {
			unreached = append(unreached, fmt.Sprintf("%s from %s", k.Name, strings.Join(not[:min(len(not), maxNamed)], ", ")))
		}
	}
	switch {
	case judged == 0:
		return false, known, fmt.Sprintf("in the last %s, no other location has probed a member that its siblings reach", text.Duration(freshFor))
	case float64(judged-len(unreached)) < reachedShare*float64(judged):
		return false, known, fmt.Sprintf("other locations do not reach %d of %d members: %s", len(unreached), judged, named(unreached, "; "))
	}
	return true, known, ""
}

func (w results) none() bool { return len(w.local) == 0 && len(w.cross) == 0 }
