package kilo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"drydock.dev/drydock/internal/bounded"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// probeMetric is what the agents say of their probes: 1, both payloads came back on a new flow; 0, they did not.
const probeMetric = "drydock_mesh_probe_success"

// words are what the agents said of a location, by Prometheus' clock. Their names and locations are those of Nodes.
type words struct {
	// local are the members' own about each other, in maxAge: of whom, by who says it.
	local  map[string]map[string]word
	maxAge time.Duration
	// pairs is Options.Pairs.
	pairs bool
	// cross are those of other locations about the members, fresh ones: who was reached, by location of the asking.
	cross map[string]map[string]tally
}

type pair struct{ src, dst string }

// word is what one node said of another, over all protocols.
type word struct {
	good bool
	// failing is the share of its probes that failed.
	failing float64
}

func (w word) suspicious() bool { return !w.good || w.failing > failingShare }

type tally struct{ good, bad int }

// account is what one node said of another, by one protocol.
type account struct {
	last    model.Time
	good    bool
	bad, of int
}

// accounts are what one node said of another, by each protocol.
type accounts [2]account

// protocols are the ones that agents probe with, in the order of accounts.
var protocols = []string{"tcp", "udp"}

// ear gathers the samples of each pair and protocol. An agent speaks for the node that Prometheus scrapes it on, which the
// label node of its target names, and for no other, whatever it writes into src_node; and it speaks from the location that
// this Node has, whatever it writes into src_location: one that lies has one voice. Roles are part of the labels and change
// with the leader, so one pair may have said its words in several series: the newest counts.
type ear struct {
	location string
	// local: it takes what nodes of the location say of each other; else what others say of them.
	local bool
	// nodes are all that there are, by name; others are of no interest, so that nobody can make it remember more.
	nodes  map[string]*election.Node
	heard  map[pair]*accounts
	series int
}

func newEar(v view, location string, local bool) *ear {
	e := &ear{location: location, local: local, nodes: make(map[string]*election.Node, len(v)), heard: map[pair]*accounts{}}
	for i := range v {
		e.nodes[v[i].Name] = &v[i].Node
	}
	return e
}

// hear takes one series. It fails when there are more than make sense.
func (e *ear) hear(series *model.SampleStream) error {
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
	said := e.heard[p]
	if said == nil {
		said = &accounts{}
	}
	s := &said[proto]
	for _, v := range series.Values {
		if v.Value != 0 && v.Value != 1 {
			continue // no agent says so
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
		e.heard[p] = said
	}
	return nil
}

func newWords(local, cross *ear, maxAge time.Duration) words {
	w := words{local: map[string]map[string]word{}, maxAge: maxAge, cross: map[string]map[string]tally{}}
	for p, said := range local.heard {
		one := word{good: true}
		for _, s := range said {
			if s.of > 0 {
				one.good = one.good && s.good
				one.failing = max(one.failing, float64(s.bad)/float64(s.of))
			}
		}
		if w.local[p.src] == nil {
			w.local[p.src] = map[string]word{}
		}
		w.local[p.src][p.dst] = one
	}
	// All words of an agent are of one scrape: what it does not say any more is of one before, and of a mesh before.
	newest := map[string]model.Time{}
	for p, said := range cross.heard {
		for _, s := range said {
			newest[p.src] = max(newest[p.src], s.last)
		}
	}
	for p, said := range cross.heard {
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

// suspects are the leader, which is what may be at fault, and the nodes under repair, as one is that led before: what they
// say of others is nothing, nor is it that others do not reach them.
func suspects(members []member, leader string) map[string]bool {
	out := map[string]bool{leader: true}
	for _, k := range members {
		if k.repair != "" {
			out[k.Name] = true
		}
	}
	return out
}

// accusers says of each member which others fail to reach it, by their last word, or lately. The words of those that are
// ignored do not count.
func (w words) accusers(members []member, ignored map[string]bool, lately bool) map[string][]string {
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

// candidate says what the words have against the member's becoming the leader, and to how many siblings it is tied. known:
// there is a word of it at all.
//
// That it does not reach a suspect is nothing, for a probe is lost at either end. That it does reach somebody is proof of
// its own sending, whoever that is: what it began to send came back, signed. So where all siblings are under repair, which
// is a location of three whose first successor was bad as well, its good word of the leader does; but not where there are
// siblings that could be asked. What suspects say of it would prove less: an answer of its own, and none that it began.
func (w words) candidate(name, leader string, members []member, accusers map[string][]string) (ties int, known bool, why string) {
	if len(members) == 2 {
		return w.onlyMember(name, leader)
	}
	if by := accusers[name]; len(by) >= suspectBy {
		return 0, true, fmt.Sprintf("it was a suspect itself in the last %s: %s did not reach it", model.Duration(w.maxAge), named(by, ", "))
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
	return 0, false, fmt.Sprintf("its agent reached no other member than the leader in the last %s", model.Duration(w.maxAge))
}

// onlyMember is candidate for the only member of a location of two nodes, where no third node can say which one is at fault.
//
// Its last probe of the leader must have succeeded: that is proof of its own sending. If Prometheus is in another location,
// that probe is from before the fault. So the leader's probe of the member, which Prometheus still has, must have succeeded
// as well: if the path between the two nodes is at fault, the old leader would be unreachable behind the new one, and the
// move could only be undone.
func (w words) onlyMember(name, leader string) (ties int, known bool, why string) {
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
		return 0, false, fmt.Sprintf("Prometheus has no probe from it to the leader %s in the last %s", leader, model.Duration(w.maxAge))
	case !answered:
		return 0, false, fmt.Sprintf("Prometheus has no probe from the leader %s to it in the last %s", leader, model.Duration(w.maxAge))
	}
	return 1, true, ""
}

// reached says whether the members answer the other locations through their leader, and if not, what is missing. One
// that its siblings do not reach either is at fault itself, and says nothing of the leader; a location that alone does
// not reach a member may be cut off for reasons of its own. known is false where there are members, and no other location
// has said anything of any.
func (w words) reached(members []member, leader string) (ok, known bool, why string) {
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
		// A tie counts as reached: while one of two other locations is cut off itself, the location could otherwise never be proved.
		if len(not)*2 > len(by) {
			unreached = append(unreached, fmt.Sprintf("%s from %s", k.Name, strings.Join(not[:min(len(not), maxNamed)], ", ")))
		}
	}
	switch {
	case judged == 0:
		return false, known, fmt.Sprintf("no other location has said in the last %s whether it reaches a member that is well among its siblings", model.Duration(freshFor))
	case float64(judged-len(unreached)) < reachedShare*float64(judged):
		return false, known, fmt.Sprintf("%d of %d members are not reached: %s", len(unreached), judged, named(unreached, "; "))
	}
	return true, known, ""
}

// none says that Prometheus had no word of the location at all.
func (w words) none() bool { return len(w.local) == 0 && len(w.cross) == 0 }
