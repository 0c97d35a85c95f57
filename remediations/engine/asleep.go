package engine

import (
	"maps"
	"time"
)

// tornBy is more than zero because the two clocks are read one after the other, and the wall clock
// may be adjusted slowly (slewed).
const tornBy = 2 * time.Second

// Torn reports whether the wall clock and the monotonic clock disagree about the time since t.
// Either the machine was suspended since t, and the monotonic clock did not count that time, or the
// wall clock was set. In both cases an observation made at t proves nothing about the present.
func Torn(t, now time.Time) bool {
	return !t.IsZero() && (now.Sub(t)-now.Round(0).Sub(t.Round(0))).Abs() > tornBy
}

func (p *pass) forgetTorn(m *memory) {
	if p.word != nil && Torn(p.word.AskedAt, p.now) {
		p.word = nil
	}
	if p.heartbeats != nil && Torn(p.heartbeats.ReadAt, p.now) {
		p.heartbeats = nil
	}
	for _, t := range []*time.Time{&m.lookSince, &m.wellSince} {
		if Torn(*t, p.now) {
			*t = time.Time{}
		}
	}
	if m.lease != nil && Torn(m.lease.ReadAt, p.now) {
		m.lease = nil
	}
	if m.survey != nil && Torn(m.survey.At, p.now) {
		m.survey = nil
	}
	if m.replacement != nil && Torn(m.replacement.At, p.now) {
		m.replacement = nil
	}
	if m.pods != nil && Torn(m.pods.At, p.now) {
		m.pods = nil
	}
	for s, said := range m.read {
		if Torn(said.At, p.now) {
			m.read = maps.Clone(m.read) // a lifecycle.State may still use the old map
			delete(m.read, s)
		}
	}
}

func (m *targetMemory) forgetTorn(now time.Time) {
	if Torn(m.seenAt, now) {
		m.seen, m.seenAt = nil, time.Time{}
	}
	if Torn(m.wellSince, now) {
		m.wellSince = time.Time{}
	}
}
