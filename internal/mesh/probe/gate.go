package probe

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// maxAge is how far a question's time may differ from this node's clock. Kilo itself ignores a node
// whose clock differs more.
const maxAge = 60 * time.Second

// Limits is how many questions are answered. Only those with a valid signature count: the source
// address of a datagram can be forged, and an attacker could use up the share of another node.
type Limits struct {
	// PerSource is answers per second for one address. The default is 200, enough for a location of
	// 500 nodes behind one address.
	PerSource float64
	// Total is answers per second for all addresses. The default is 4000, enough for a leader that
	// 10,000 agents probe.
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

// maxSources addresses have a token bucket of their own. All further ones share one.
const maxSources = 16 << 10

// gate admits a question if it is at most maxAge old, was not admitted before, and is within the
// limits.
type gate struct {
	limits Limits

	mu      sync.Mutex
	total   bucket
	sources map[netip.Addr]*bucket
	others  bucket
	// recent has the nonces of the questions that were admitted after began, and before has those
	// of the period before. Each period is at least 2*maxAge long, because the gate rejects older
	// questions. Limits.Total limits the size of both maps.
	recent, before map[uint64]struct{}
	began          time.Time
}

func newGate(l Limits) *gate {
	return &gate{limits: l.withDefaults(), sources: map[netip.Addr]*bucket{}, recent: map[uint64]struct{}{}}
}

// The caller has already checked the key of the question.
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

// A bucket holds two seconds' worth of answers, and starts full.
type bucket struct {
	taken float64 // how much is used
	at    time.Time
}

// rate is in answers per second. The caller must add the answer to taken.
func (b *bucket) has(now time.Time, rate float64) bool {
	if d := now.Sub(b.at); d > 0 {
		b.taken, b.at = max(0, b.taken-d.Seconds()*rate), now
	}
	return b.taken+1 <= 2*rate
}

func (b *bucket) full(now time.Time, rate float64) bool {
	return b.taken-now.Sub(b.at).Seconds()*rate <= 0
}
