package probe

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// maxAge is the largest difference between the time in a question and this node's clock, in either
// direction. Kilo itself ignores a node whose clock differs more.
const maxAge = 60 * time.Second

// Limits limits how many questions are answered. Only questions with a valid signature count.
// Otherwise an attacker could use up the share of another node, because the source address of a
// datagram can be forged.
type Limits struct {
	// PerSource is the number of answers per second for one address. The default is 200, which is
	// enough for a location of 500 nodes behind one address.
	PerSource float64
	// Total is the number of answers per second for all addresses together. The default is 4000, which
	// is enough for a leader that 10,000 agents probe.
	Total float64
}

func (l Limits) withDefaults() Limits {
	if l.PerSource == 0 {
		l.PerSource = 200
	}
	if l.Total == 0 {
		l.Total = 4000
	}
	return l
}

// maxSources is how many source addresses have a token bucket of their own. All further addresses
// share one bucket.
const maxSources = 16 << 10

// gate admits a question if it is at most maxAge old, was not admitted before, and is within the
// limits.
type gate struct {
	limits Limits

	mu      sync.Mutex
	total   bucket
	sources map[netip.Addr]*bucket
	others  bucket
	// recent has the nonces of the questions that were admitted after the time in began. before has
	// the nonces of the period before this time. Each period is at least 2*maxAge long. Older
	// nonces are not needed, because the gate rejects questions of that age. Limits.Total limits
	// the size of both maps.
	recent, before map[uint64]struct{}
	began          time.Time
}

func newGate(l Limits) *gate {
	return &gate{limits: l.withDefaults(), sources: map[netip.Addr]*bucket{}, recent: map[uint64]struct{}{}}
}

// admit decides whether a question with a valid key is answered.
func (g *gate) admit(q message, from netip.Addr, now time.Time) result {
	if age := now.Sub(q.at); age > maxAge || age < -maxAge {
		return stale
	}
	from = from.Unmap().WithZone("")
	nonce := binary.BigEndian.Uint64(q.nonce[:])
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn(now)
	if g.has(nonce) {
		return replayed
	}
	source := g.bucket(from, now)
	if !source.has(now, g.limits.PerSource) || !g.total.has(now, g.limits.Total) {
		return limited
	}
	source.taken++
	g.total.taken++
	g.recent[nonce] = struct{}{}
	return answered
}

func (g *gate) has(nonce uint64) bool {
	_, recent := g.recent[nonce]
	_, before := g.before[nonce]
	return recent || before
}

func (g *gate) turn(now time.Time) {
	if g.began.IsZero() {
		g.began = now
	}
	if now.Sub(g.began) < 2*maxAge {
		return
	}
	g.before, g.recent, g.began = g.recent, map[uint64]struct{}{}, now
}

func (g *gate) bucket(from netip.Addr, now time.Time) *bucket {
	if b, ok := g.sources[from]; ok {
		return b
	}
	if len(g.sources) >= maxSources {
		for a, b := range g.sources {
			if b.full(now, g.limits.PerSource) {
				delete(g.sources, a)
			}
		}
	}
	if len(g.sources) >= maxSources {
		return &g.others
	}
	b := &bucket{}
	g.sources[from] = b
	return b
}

// bucket is a token bucket that holds two seconds' worth of answers. It starts full.
type bucket struct {
	taken float64 // how much is used
	at    time.Time
}

// has reports whether the bucket has room for one more answer. rate is in answers per second. has
// does not count the answer. The caller must add it to taken.
func (b *bucket) has(now time.Time, rate float64) bool {
	if d := now.Sub(b.at); d > 0 {
		b.taken, b.at = max(0, b.taken-d.Seconds()*rate), now
	}
	return b.taken+1 <= 2*rate
}

func (b *bucket) full(now time.Time, rate float64) bool {
	return b.taken-now.Sub(b.at).Seconds()*rate <= 0
}
