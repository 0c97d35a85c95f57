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

// probeMetric is the agents' metric for their probes: 1, both payloads came back on a new flow; 0,
// they did not.
const probeMetric = "drydock_mesh_probe_success"

// results holds the agents' probe results about a location, by Prometheus' clock. Their names and
// locations are those of Nodes.
type results struct {
	// local holds the members' results about each other within maxAge: probing node, then probed
	// node.
	local  map[string]map[string]result
	maxAge time.Duration
	// pairs is Options.Pairs.
	pairs bool
	// cross holds the fresh results of other locations about the members: probed node, then the
	// location of the probing node.
	cross map[string]map[string]tally
}

type pair struct{ src, dst string }

// result is one node's result about another, over all protocols.
type result struct {
	good bool
	// failing is the share of its probes that failed.
	failing float64
}

func (w result) suspicious() bool { return !w.good || w.failing > failingShare }

type tally struct{ good, bad int }

// account is one node's result about another, by one protocol.
type account struct {
	last    model.Time
	good    bool
	bad, of int
}

// accounts are one node's results about another, one for each protocol.
type accounts [2]account

// protocols are the protocols of the agents' probes, in the order of accounts.
var protocols = []string{"tcp", "udp"}

// reader gathers the samples of each pair and protocol. An agent speaks only for the node of the
// Prometheus target, from the label node, whatever it writes into src_node. Its location is that of
// this Node, whatever it writes into src_location. So an agent that lies has one voice. Roles are
// part of the labels and change with the leader, so the results of one pair may be in several
// series: the newest counts.
type reader struct {
	location string
	// local: take what nodes of the location report of each other; else what nodes elsewhere report
	// of them.
	local bool
	// nodes are all nodes, by name. Samples of other names are ignored, so that they cannot fill
	// the memory.
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

// read reads one series. It fails when there are more than maxSeries.
func (e *reader) read(series *model.SampleStream) error {
	if e.series++; e.series > maxSeries {
		return fmt.Errorf("%w: it has more than %d series", bounded.ErrTooLarge, maxSeries)
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
			continue // not a value that an agent writes
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
	// All results of an agent come from one scrape: an older one is from an earlier mesh, because
	// the agent no longer exports it.
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

// suspects are the leader, which may be at fault, and the nodes under repair, because such a node
// led before. What they report of others does not count, and neither do the others' failures to
// reach them.
func suspects(members []member, leader string) map[string]bool {
	out := map[string]bool{leader: true}
	for _, k := range members {
		if k.repair != "" {
			out[k.Name] = true
		}
	}
	return out
}

// accusers returns for each member which other nodes fail to reach it, by their last result, or
// lately. The results of ignored nodes do not count.
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

// candidate returns why the results speak against the member as the new leader, and how many
// siblings it is tied to. known: there is a result about it at all.
//
//	That it fails to reach a suspect proves nothing, for a probe can be lost at either end. That it
//
// reaches any node proves its own sending: the traffic that it began came back, signed. So if all
// siblings are under repair, its good result about the leader is enough. This happens in a location
// of three whose first successor was bad as well. That result is not enough if there are siblings
// that could be probed. What suspects report of it would prove less: an answer of its own, and not
// traffic that it began.
func (w results) candidate(name, leader string, members []member, accusers map[string][]string) (ties int, known bool, why string) {
	if len(members) == 2 {
		return w.onlyMember(name, leader)
	}
	if by := accusers[name]; len(by) >= suspectBy {
		return 0, true, fmt.Sprintf("it was a suspect itself in the last %s: %s did not reach it", text.Duration(w.maxAge), named(by, ", "))
	}
	var unreached, repaired []string
	last := true // the leader is all that is left to ask
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
		return 0, true, fmt.Sprintf("it does not reach the leader %s either, and its siblings are under repair: %s", leader, named(repaired, ", "))
	}
	return 0, false, fmt.Sprintf("its agent reached no other member than the leader in the last %s", text.Duration(w.maxAge))
}

// onlyMember is candidate for the only member of a location of two nodes, where no third node can
// show which one is at fault.
//
// Its last probe of the leader must have succeeded: that proves its own sending. If Prometheus is
// in another location, that probe is from before the fault. So the leader's probe of the member,
// which Prometheus still has, must have succeeded as well. If the path between the two nodes is at
// fault, the old leader would be unreachable behind the new one, and the move could only be undone.
func (w results) onlyMember(name, leader string) (ties int, known bool, why string) {
	if !w.pairs {
		return 0, true, "with one member it is unknown which of the two nodes is at fault. Set providers.kilo.pairs: true to allow the move"
	}
	to, asked := w.local[name][leader]
	back, answered := w.local[leader][name]
	switch {
	case asked && !to.good:
		return 0, true, fmt.Sprintf("it does not reach the leader %s: the path between the two nodes is at fault, and a move would not help", leader)
	case answered && !back.good:
		return 0, true, fmt.Sprintf("the leader %s does not reach it: the path between the two nodes is at fault, and a move would not help", leader)
	case !asked:
		return 0, false, fmt.Sprintf("Prometheus has no probe from it to the leader %s in the last %s", leader, text.Duration(w.maxAge))
	case !answered:
		return 0, false, fmt.Sprintf("Prometheus has no probe from the leader %s to it in the last %s", leader, text.Duration(w.maxAge))
	}
	return 1, true, ""
}

// reached reports whether the members answer the other locations through their leader, and if not,
// what is missing. A member that its siblings do not reach either is at fault itself, and shows
// nothing about the leader. A location that is the only one not to reach a member may be cut off
// itself. known is false if there are members and no other location has reported any of them.
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
		// A tie counts as reached: while one of two other locations is cut off itself, the location
		// could otherwise never be proved.
		if len(not)*2 > len(by) {
			unreached = append(unreached, fmt.Sprintf("%s from %s", k.Name, strings.Join(not[:min(len(not), maxNamed)], ", ")))
		}
	}
	switch {
	case judged == 0:
		return false, known, fmt.Sprintf("no other location has said in the last %s whether it reaches a member that is well among its siblings", text.Duration(freshFor))
	case float64(judged-len(unreached)) < reachedShare*float64(judged):
		return false, known, fmt.Sprintf("%d of %d members are not reached: %s", len(unreached), judged, named(unreached, "; "))
	}
	return true, known, ""
}

// none reports that Prometheus had no results about the location at all.
func (w results) none() bool { return len(w.local) == 0 && len(w.cross) == 0 }
