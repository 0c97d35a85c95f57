package fleet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Share is how much of one limit the repairs of other nodes use.
type Share struct {
	taken, most int
	// of is where the limit applies, for example "in zone a". limit is its key in the
	// configuration, size its value.
	of, limit string
	size      remediations.Quantity
	// Concern is the zone or pool, or empty if the limit is about all nodes.
	Concern remediations.Concern
	// by is the node whose repair counts and is closest to running, or empty.
	by    string
	place place
}

func (s Share) String() string {
	return fmt.Sprintf("repairs under way %s: %d of at most %d", s.of, s.taken, s.most)
}

func (s *Share) take(node string, p place) {
	s.taken++
	if s.by == "" || p.distance() < s.place.distance() || (p.distance() == s.place.distance() && node < s.by) {
		s.by, s.place = node, p
	}
}

// distance is 0 for a running repair, 1 parked, 2 about to begin, 3 only simulated.
func (p place) distance() int {
	switch {
	case p.wouldBe:
		return 3
	case p.next:
		return 2
	case p.parked:
		return 1
	}
	return 0
}

// who returns the node in brackets, and why its repair counts if it does not run.
func (s Share) who() string {
	switch {
	case s.by == "":
		return ""
	case s.place.wouldBe:
		return fmt.Sprintf(" (%s, which observe mode would repair)", s.by)
	case s.place.next:
		return fmt.Sprintf(" (%s, whose repair is about to begin)", s.by)
	case s.place.parked:
		return fmt.Sprintf(" (%s, which is drained and waits for its next step)", s.by)
	}
	return fmt.Sprintf(" (%s)", s.by)
}

// Shares returns the limits of the cluster, of the node's zone and pool, and of the provider for a
// disruptive repair. provider is from Config.ProviderAhead. observing means that the policy only
// observes.
func (f *Fleet) Shares(c *remediations.Config, n *corev1.Node, provider string, observing bool) []Share {
	zone, pool, l := c.Zone(n), c.Pool(n), c.Limits
	inAll := Share{most: l.Concurrent.Of(f.nodes), of: "in the cluster", limit: "limits.concurrent", size: l.Concurrent}
	size := 0
	if z := f.zones[zone]; z != nil {
		size = z.nodes
	}
	inZone := Share{most: l.ConcurrentPerZone.Of(size), of: "in zone " + zone, limit: "limits.concurrentPerZone", size: l.ConcurrentPerZone, Concern: remediations.Concern{Zone: zone}}
	inPool := Share{most: l.ConcurrentPerPool.Of(f.pools[pool]), of: "in pool " + pool, limit: "limits.concurrentPerPool", size: l.ConcurrentPerPool, Concern: remediations.Concern{Pool: pool}}
	most := c.ConcurrentOf(provider)
	byProvider := Share{most: most, of: "by provider " + provider, limit: "providers." + provider + ".concurrent", size: remediations.Quantity{Value: most}}
	for name, p := range f.occupied {
		if name == n.Name || (p.wouldBe && !observing) || !f.beside(p, n.Name) {
			continue
		}
		inAll.take(name, p)
		if p.inZone(zone) {
			inZone.take(name, p)
		}
		if p.inPool(pool) {
			inPool.take(name, p)
		}
		if p.provider == provider {
			byProvider.take(name, p)
		}
	}
	all := []Share{inAll}
	if zone != "" {
		all = append(all, inZone)
	}
	if pool != "" {
		all = append(all, inPool)
	}
	if most > 0 {
		all = append(all, byProvider)
	}
	return all
}

// Spent returns the first limit without room, or nil.
func (f *Fleet) Spent(c *remediations.Config, n *corev1.Node, provider string, observing bool) *Share {
	for _, s := range f.Shares(c, n, provider, observing) {
		if s.taken >= s.most {
			return &s
		}
	}
	return nil
}

// Why returns the message that the limit has no room.
func (s Share) Why() string { return fmt.Sprintf("%s%s; %s is %s", s, s.who(), s.limit, s.size) }

// AtLimit returns the message about the first limit without room, or an empty text.
func (f *Fleet) AtLimit(c *remediations.Config, n *corev1.Node, provider string, observing bool) string {
	if s := f.Spent(c, n, provider, observing); s != nil {
		return s.Why()
	}
	return ""
}
