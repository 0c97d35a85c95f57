package ui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations/ledger"
)

type fleetPage struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Connection connection `json:"connection"`
	// InForce are facts about the whole fleet, with the commands that change them.
	InForce []fact `json:"inForce"`
	// Breakers are the breakers' scopes, with the number of unhealthy nodes in each.
	Breakers []scope `json:"breakers"`
	Counts   []count `json:"counts"`
	// Concern are unhealthy nodes. Those that need a person come first. More is the number of further
	// ones.
	Concern []tile  `json:"concern"`
	More    int     `json:"more,omitempty"`
	Groups  []group `json:"groups"`

	number uint64
}

// Folded reports whether the page shows only a part of the table at first. A long table would push
// the tiles off the screen.
func (p fleetPage) Folded() bool { return len(p.Concern) > fewConcern }

// NotWell returns how many nodes are not healthy.
func (p fleetPage) NotWell() int { return len(p.Concern) + p.More }

// Alarms returns the facts about the whole fleet that need attention.
func (p fleetPage) Alarms() []fact { return p.facts(false) }

// Calm returns the facts about the whole fleet that are normal.
func (p fleetPage) Calm() []fact { return p.facts(true) }

func (p fleetPage) facts(calm bool) (out []fact) {
	for _, f := range p.InForce {
		if f.Calm == calm {
			out = append(out, f)
		}
	}
	return out
}

const (
	// denseAbove is the largest number of nodes for tiles with names. With more, each tile is only a
	// square, so that all tiles fit on the screen.
	denseAbove = 150
	// smallTilesAbove is the limit for squares large enough for a finger. With smaller squares, 5,000
	// nodes fit on one screen.
	smallTilesAbove = 1500
)

// Density returns the kind of the tiles, for the attribute data-density: "" for tiles with names,
// "dense" for squares, "crowd" for small squares.
func (p fleetPage) Density() string {
	n := 0
	for _, c := range p.Counts {
		n += c.Nodes
	}
	switch {
	case n > smallTilesAbove:
		return "crowd"
	case n > denseAbove:
		return "dense"
	}
	return ""
}

// Square reports whether a tile is only a square. That is one HTML element, which keeps a page with
// thousands of nodes fast.
func (p fleetPage) Square() bool { return p.Density() != "" }

func (p fleetPage) knownAt() uint64 { return p.number }

type fact struct {
	What string `json:"what"`
	Says string `json:"says"`
	// Calm reports that the state is normal.
	Calm bool `json:"calm"`
}

type scope struct {
	Scope string `json:"scope"`
	State string `json:"state"`
	// Unhealthy and Nodes come from the ledger if the breaker is not closed. Otherwise the page
	// counts. Excluded nodes and nodes younger than limits.startupGrace do not count. Limit is the
	// configured limit of unhealthy nodes.
	Unhealthy int    `json:"unhealthy"`
	Nodes     int    `json:"nodes"`
	Limit     string `json:"limit,omitempty"`
}

// Open reports whether the breaker is not closed, so that it holds repairs.
func (s scope) Open() bool { return s.State != string(ledger.BreakerClosed) }

type count struct {
	Look
	Nodes int `json:"nodes"`
}

type group struct {
	Zone  string `json:"zone,omitempty"`
	Pool  string `json:"pool,omitempty"`
	Tiles []tile `json:"nodes"`
}

// Key has the format of tile.Group.
func (g group) Key() string { return g.Zone + "/" + g.Pool }

const (
	// maxConcern bounds the table of unhealthy nodes. The tiles show all nodes.
	maxConcern = 50
	// fewConcern is how many rows the page shows at first. static/style.css has the same number.
	fewConcern = 5
)

func (f *fleet) page(now time.Time) fleetPage {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := fleetPage{APIVersion: inspect.APIVersion, Kind: "Fleet", Connection: f.connection, number: f.number, Concern: []tile{}, Groups: []group{}}
	tiles := slices.SortedFunc(maps.Values(f.tiles), byNode)
	counts := map[State]int{}
	groups := map[[2]string]*group{}
	for _, t := range tiles {
		counts[t.State]++
		key := [2]string{t.Zone, t.Pool}
		if groups[key] == nil {
			groups[key] = &group{Zone: t.Zone, Pool: t.Pool}
		}
		groups[key].Tiles = append(groups[key].Tiles, t)
		if t.State != Well && t.State != Cordoned {
			p.Concern = append(p.Concern, t)
		}
	}
	slices.SortStableFunc(p.Concern, func(a, b tile) int { return rank(a.State) - rank(b.State) })
	if len(p.Concern) > maxConcern {
		p.Concern, p.More = p.Concern[:maxConcern], len(p.Concern)-maxConcern
	}
	for _, l := range states {
		p.Counts = append(p.Counts, count{l, counts[l.State]})
	}
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return cmp.Or(natural(a[0], b[0]), natural(a[1], b[1])) }) {
		p.Groups = append(p.Groups, *groups[key])
	}
	p.Breakers, p.InForce = f.scopes(tiles, now), f.inForce(now)
	return p
}

// The caller holds the lock.
func (f *fleet) inForce(now time.Time) (out []fact) {
	if !f.listed && f.leader.Lease == "" {
		return nil // nothing was read yet
	}
	if f.leader.None == "" && f.leader.Unseen == "" && f.leader.Holder != "" {
		out = append(out, fact{"Leader", plain(f.leader.Holder), true})
	}
	s := inspect.Status{Ledger: f.ledger, Leader: f.leader}
	for _, name := range slices.SortedFunc(maps.Keys(f.nodes), natural) {
		s.CountIll(f.nodes[name], now)
		s.CountParked(f.nodes[name], now)
		s.CountPaused(f.nodes[name], now)
	}
	for _, l := range s.Lines(now) {
		out = append(out, fact{l.Label, plain(l.Text), l.Calm})
	}
	return out
}

// The caller holds the lock.
func (f *fleet) scopes(tiles []tile, now time.Time) []scope {
	st := f.ledger.Status
	if st == nil {
		return nil
	}
	zones := map[string]*scope{}
	all := &scope{Scope: ledger.ScopeCluster}
	for _, t := range tiles {
		zone := "zone/" + t.Zone
		if zones[zone] == nil {
			zones[zone] = &scope{Scope: zone}
		}
		if !f.ledger.Counts(f.nodes[t.Node], now) {
			continue
		}
		for _, s := range []*scope{all, zones[zone]} {
			s.Nodes++
			if t.Ill != "" {
				s.Unhealthy++
			}
		}
	}
	out := []scope{*all}
	for _, name := range slices.SortedFunc(maps.Keys(zones), natural) {
		if _, open := st.Breakers[name]; open || len(zones) > 1 && name != "zone/" {
			out = append(out, *zones[name])
		}
	}
	for i := range out {
		out[i].State, out[i].Limit = string(ledger.BreakerClosed), plain(st.Limits["unhealthy"])
		if b, open := st.Breakers[out[i].Scope]; open {
			out[i].State, out[i].Unhealthy, out[i].Nodes = string(b.State), b.Unhealthy, b.Nodes
		}
	}
	return out
}
