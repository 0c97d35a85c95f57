package ui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations/ledger"
)

// FleetPage is the content of the Fleet page.
type FleetPage struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Connection Connection `json:"connection"`
	// InForce is what applies to the fleet now: who or what, until when, and the command that
	// changes it.
	InForce []Fact `json:"inForce"`
	// Breakers are the scopes with counted nodes.
	Breakers []Scope `json:"breakers"`
	Counts   []Count `json:"counts"`
	// Concern are the unhealthy nodes, those that need a person first. More is how many are left
	// out.
	Concern []Tile  `json:"concern"`
	More    int     `json:"more,omitempty"`
	Groups  []Group `json:"groups"`

	number uint64
}

// Folded reports whether the table of unhealthy nodes has more rows than are shown at first: in a
// storm the tiles come first.
func (p FleetPage) Folded() bool { return len(p.Concern) > fewConcern }

// NotWell returns how many nodes are not healthy.
func (p FleetPage) NotWell() int { return len(p.Concern) + p.More }

// Alarms returns the facts that need attention.
func (p FleetPage) Alarms() []Fact { return p.facts(false) }

// Calm returns the other facts.
func (p FleetPage) Calm() []Fact { return p.facts(true) }

func (p FleetPage) facts(calm bool) (out []Fact) {
	for _, f := range p.InForce {
		if f.Calm == calm {
			out = append(out, f)
		}
	}
	return out
}

const (
	// denseAbove is the most nodes that have tiles with names. More nodes are squares, so that all
	// are visible.
	denseAbove = 150
	// smallTilesAbove is the most nodes with squares that are large enough for a finger. More nodes
	// have smaller ones, so that 5,000 fit on one screen.
	smallTilesAbove = 1500
)

// Density returns the size of a tile: empty for one with its name, otherwise a square, and a small
// one for many nodes.
func (p FleetPage) Density() string {
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

// Square reports whether a tile is only a shape. One element per tile keeps a page with thousands
// fast.
func (p FleetPage) Square() bool { return p.Density() != "" }

// knownAt returns the number of the last change that the page shows.
func (p FleetPage) knownAt() uint64 { return p.number }

// Fact is one fact about the fleet.
type Fact struct {
	What string `json:"what"`
	Says string `json:"says"`
	// Calm: the state is normal.
	Calm bool `json:"calm"`
}

// Scope is the scope of a breaker: the cluster, or a zone.
type Scope struct {
	Scope string `json:"scope"`
	State string `json:"state"`
	// Unhealthy and Nodes are Drydock's own counts if the breaker is not closed. Otherwise they are
	// counted here: the ledger has no count for a closed breaker. Neither includes excluded nodes
	// or nodes younger than limits.startupGrace. Limit is configured.
	Unhealthy int    `json:"unhealthy"`
	Nodes     int    `json:"nodes"`
	Limit     string `json:"limit,omitempty"`
}

// Open reports whether the breaker holds repairs.
func (s Scope) Open() bool { return s.State != string(ledger.BreakerClosed) }

// Count is how many nodes are in a state.
type Count struct {
	Look
	Nodes int `json:"nodes"`
}

// Group is the nodes of one zone and pool.
type Group struct {
	Zone  string `json:"zone,omitempty"`
	Pool  string `json:"pool,omitempty"`
	Tiles []Tile `json:"nodes"`
}

// Key is the group's name, as in its tiles.
func (g Group) Key() string { return g.Zone + "/" + g.Pool }

const (
	// maxConcern bounds the table of unhealthy nodes: the tiles show the others.
	maxConcern = 50
	// fewConcern is how many rows are shown until a person asks for more, as in static/style.css.
	fewConcern = 5
)

// page returns the current Fleet page.
func (f *fleet) page(now time.Time) FleetPage {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := FleetPage{APIVersion: inspect.APIVersion, Kind: "Fleet", Connection: f.connection, number: f.number, Concern: []Tile{}, Groups: []Group{}}
	tiles := slices.SortedFunc(maps.Values(f.tiles), byNode)
	counts := map[State]int{}
	groups := map[[2]string]*Group{}
	for _, t := range tiles {
		counts[t.State]++
		key := [2]string{t.Zone, t.Pool}
		if groups[key] == nil {
			groups[key] = &Group{Zone: t.Zone, Pool: t.Pool}
		}
		groups[key].Tiles = append(groups[key].Tiles, t)
		if t.State != Well && t.State != Cordoned {
			p.Concern = append(p.Concern, t)
		}
	}
	slices.SortStableFunc(p.Concern, func(a, b Tile) int { return rank(a.State) - rank(b.State) })
	if len(p.Concern) > maxConcern {
		p.Concern, p.More = p.Concern[:maxConcern], len(p.Concern)-maxConcern
	}
	for _, l := range States {
		p.Counts = append(p.Counts, Count{l, counts[l.State]})
	}
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return cmp.Or(natural(a[0], b[0]), natural(a[1], b[1])) }) {
		p.Groups = append(p.Groups, *groups[key])
	}
	p.Breakers, p.InForce = f.scopes(tiles, now), f.inForce(now)
	return p
}

// inForce returns what `kubectl drydock status` shows of the fleet, and what people set on Nodes.
// The caller holds the lock.
func (f *fleet) inForce(now time.Time) (out []Fact) {
	if !f.listed && f.leader.Lease == "" {
		return nil // nothing was read yet
	}
	if f.leader.None == "" && f.leader.Unseen == "" && f.leader.Holder != "" {
		out = append(out, Fact{"Leader", plain(f.leader.Holder), true})
	}
	s := inspect.Status{Ledger: f.ledger, Leader: f.leader}
	for _, name := range slices.SortedFunc(maps.Keys(f.nodes), natural) {
		s.CountIll(f.nodes[name], now)
		s.CountParked(f.nodes[name], now)
		s.CountPaused(f.nodes[name], now)
	}
	for _, l := range s.Lines(now) {
		out = append(out, Fact{l.Label, plain(l.Text), l.Calm})
	}
	return out
}

// scopes returns the breakers, each with its count. The caller holds the lock.
func (f *fleet) scopes(tiles []Tile, now time.Time) []Scope {
	st := f.ledger.Status
	if st == nil {
		return nil
	}
	zones := map[string]*Scope{}
	all := &Scope{Scope: ledger.ScopeCluster}
	for _, t := range tiles {
		zone := "zone/" + t.Zone
		if zones[zone] == nil {
			zones[zone] = &Scope{Scope: zone}
		}
		if !f.ledger.Counts(f.nodes[t.Node], now) {
			continue
		}
		for _, s := range []*Scope{all, zones[zone]} {
			s.Nodes++
			if t.Ill != "" {
				s.Unhealthy++
			}
		}
	}
	out := []Scope{*all}
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
