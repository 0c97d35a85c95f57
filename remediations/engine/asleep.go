package engine

import (
	"maps"
	"time"

	"drydock.dev/drydock/remediations/targets/apiserver"
)

// tornBy is how far the wall clock and the monotonic clock may come apart. They are read one after the other, and the wall
// clock may be slewed.
const tornBy = 2 * time.Second

// torn says that the two clocks disagree about how long ago t was. The machine was suspended since then, which the monotonic
// clock does not count, or its wall clock was set. What was seen at t says nothing about now.
func torn(t, now time.Time) bool {
	return !t.IsZero() && (now.Sub(t)-now.Round(0).Sub(t.Round(0))).Abs() > tornBy
}

// forgetTorn forgets what was seen before such a moment, so that it is read again before anything rests on it.
func (p *pass) forgetTorn(m *memory) {
	if p.word != nil && torn(p.word.AskedAt, p.now) {
		p.word = nil
	}
	if p.heartbeats != nil && torn(p.heartbeats.ReadAt, p.now) {
		p.heartbeats = nil
	}
	for _, t := range []*time.Time{&m.lookSince, &m.wellSince} {
		if torn(*t, p.now) {
			*t = time.Time{}
		}
	}
	if m.lease != nil && torn(m.lease.ReadAt, p.now) {
		m.lease = nil
	}
	if m.survey != nil && torn(m.survey.At, p.now) {
		m.survey = nil
	}
	if m.replacement != nil && torn(m.replacement.At, p.now) {
		m.replacement = nil
	}
	if m.pods != nil && torn(m.pods.At, p.now) {
		m.pods = nil
	}
	for s, said := range m.read {
		if torn(said.At, p.now) {
			m.read = maps.Clone(m.read) // a State may still hold it
			delete(m.read, s)
		}
	}
}

// forgetTorn is the same for a target that is not the node itself.
func (m *targetMemory) forgetTorn(now time.Time) {
	if torn(m.seenAt, now) {
		m.seen, m.seenAt = nil, time.Time{}
	}
	if torn(m.wellSince, now) {
		m.wellSince = time.Time{}
	}
}

// forgetTorn is the same for the API servers.
func (r *Rescue) forgetTorn(now time.Time) {
	if r.word != nil && torn(r.word.AskedAt, now) {
		r.word = nil
	}
	for _, seen := range r.sights {
		if torn(seen.At, now) {
			r.sights = map[string]apiserver.HostSight{}
			break
		}
	}
	if torn(r.wellSince, now) {
		r.wellSince = time.Time{}
	}
}
