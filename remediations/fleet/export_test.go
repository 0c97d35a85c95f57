package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Exports that only the tests need.

const SeenFor = seenFor

var Opened = opened

func (x *Fleet) Occupied() map[string]place { return x.occupied }

func (x *Fleet) Leading() map[string]leading { return x.leading }

func (x *Fleet) Unhealthy() int { return x.total.unhealthy }

func (x *Fleet) WithoutRoster() { x.roster = nil }

// Count returns the counts of the Fleet.
func (x *Fleet) Count() map[string]int {
	out := map[string]int{}
	put := func(key string, n int) {
		if n > 0 {
			out[key] = n
		}
	}
	put("all", x.total.nodes)
	put("unhealthy all", x.total.unhealthy)
	for zone, z := range x.zones {
		put("zone/"+zone, z.nodes)
		put("unhealthy zone/"+zone, z.unhealthy)
	}
	for pool, n := range x.pools {
		put("pool/"+pool, n)
	}
	return out
}

// NewRosterOf returns a Roster with these Nodes.
func NewRosterOf(c *remediations.Config, nodes []*corev1.Node) *Roster {
	r := NewRoster(c)
	r.Read(nodes)
	return r
}

// RememberedWindow returns until when the roster uses its cached result of when repairs may begin.
func (r *Roster) RememberedWindow() time.Time { return r.window.next }

// Holders returns the number of machine and boot IDs that the roster has.
func (r *Roster) Holders() int { return len(r.machines.nodes) + len(r.boots.nodes) }

// ProviderOf returns the provider of the repair that occupies the node.
func (x *Fleet) ProviderOf(node string) string { return x.occupied[node].provider }
