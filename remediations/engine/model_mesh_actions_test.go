package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	kilo "drydock.dev/drydock/remediations/providers/kilo/election"
)

// anyLeaders adds the policy about leaders, as an operator might write it.
func anyLeaders(t *rapid.T, c *remediations.Config) {
	p := leaderPolicyOf(withLeaders(c))
	p.Mode = rapid.SampledFrom([]remediations.Mode{remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeObserve}).Draw(t, "leaders' mode")
	p.Plan[0].Attempts = rapid.IntRange(1, 2).Draw(t, "leaders' attempts")
	p.ProofFor = rapid.SampledFrom([]time.Duration{0, 30 * time.Second, time.Minute}).Draw(t, "leaders' proof for")
	p.RepairCordoned = rapid.Bool().Draw(t, "leaders that are cordoned")
	c.Limits.Locations.Concurrent = rapid.IntRange(1, 2).Draw(t, "leaders at once")
	c.Limits.Locations.PerLocation = rapid.SampledFrom([]time.Duration{15 * time.Minute, 3 * time.Minute}).Draw(t, "per location")
}

// anyPlace returns one of the locations, or nil if there is none.
func (l *life) anyPlace(t *rapid.T) *place {
	if l.w.mesh == nil {
		return nil
	}
	return l.w.mesh.places[rapid.SampledFrom(slices.Sorted(maps.Keys(l.w.mesh.places))).Draw(t, "location")]
}

// leaderFails is the simplest fault: a leader stops relaying. Its alert fires if the drawn time is
// long enough.
func (l *life) leaderFails(t *rapid.T) {
	l.w.do(func() {
		if p := l.anyPlace(t); p != nil {
			l.w.darken(p.leader, true)
		}
	})
	l.w.pass(rapid.SampledFrom([]time.Duration{20 * time.Second, 45 * time.Second, 2 * time.Minute, 4 * time.Minute}).Draw(t, "for"))
}

func (l *life) locations() map[string]func(*rapid.T) {
	where := func(f func(*rapid.T, *place)) func(*rapid.T) {
		return l.do(func(t *rapid.T, w *world) {
			if p := l.anyPlace(t); p != nil {
				f(t, p)
				w.elect()
			}
		})
	}
	one := func(f func(string, *member)) func(*rapid.T) {
		return l.do(func(t *rapid.T, w *world) {
			if n := pick(t); w.mesh != nil && w.mesh.members[n] != nil {
				f(n, w.mesh.members[n])
				w.elect()
			}
		})
	}
	return map[string]func(*rapid.T){
		"a leader relays nothing":           where(func(_ *rapid.T, p *place) { l.w.darken(p.leader, true) }),
		"a member relays nothing, or does":  one(func(_ string, m *member) { m.dark = !m.dark }),
		"it will not once it leads, or may": one(func(_ string, m *member) { m.darkLeading = !m.darkLeading }),
		"its Kilo agent dies, or lives":     one(func(_ string, m *member) { m.mute = !m.mute }),
		"somebody writes its key, or takes it": one(func(n string, m *member) {
			l.w.mesh.touched[m.place.name] = true
			l.w.edit(n, func(n *corev1.Node) {
				if _, has := n.Annotations[kilo.LeaderKey]; has {
					delete(n.Annotations, kilo.LeaderKey)
				} else {
					n.Annotations[kilo.LeaderKey] = "by hand"
				}
			})
		}),
		"its alert is posted":       where(func(_ *rapid.T, p *place) { l.w.postPlace(p.name) }),
		"its alert is silenced":     where(func(_ *rapid.T, p *place) { p.silenced = !p.silenced }),
		"its alert is inhibited":    where(func(_ *rapid.T, p *place) { p.inhibited = !p.inhibited }),
		"its granularity is full":   where(func(_ *rapid.T, p *place) { p.hold(map[bool]string{true: "its granularity is full"}[p.held == ""]) }),
		"nobody probes it, or does": where(func(_ *rapid.T, p *place) { p.hide(!p.hidden) }),
		"a write of a key goes wrong": l.do(func(t *rapid.T, w *world) {
			w.faults["key"] = rapid.SliceOfN(rapid.SampledFrom([]string{"lost", "written", "conflict"}), 1, 3).Draw(t, "faults")
		}),
		"nothing can be put back": where(func(*rapid.T, *place) { l.w.mesh.backFails = !l.w.mesh.backFails }),
		"a look at the mesh takes": where(func(t *rapid.T, _ *place) {
			l.w.mesh.lookTakes = rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Second}).Draw(t, "time")
		}),
		"how moves are treated": where(func(t *rapid.T, _ *place) {
			l.w.mesh.mood = rapid.SampledFrom([]providerMood{{}, {}, {refuse: true}, {cut: true}, {before: 8 * time.Second}, {before: 12 * time.Second}, {between: 4 * time.Second}, {between: 3 * time.Minute}, {after: 20 * time.Second}, {after: time.Hour}}).Draw(t, "mood")
		}),
		"a person cancels its repair": l.do(func(t *rapid.T, w *world) {
			n := pick(t)
			if w.mesh == nil || w.nodes[n] == nil || w.nodes[n].Annotations[remediations.CancelKey] != "" {
				return
			}
			if r := w.leaderRecords()[n]; r != nil && r.Phase != remediations.PhaseExhausted {
				w.cancelled[r.ID] = time.Now()
				w.edit(n, edit(remediations.CancelKey, r.ID))
			}
		}),
	}
}

func (p *place) hold(why string) {
	if p.held == "" && why != "" {
		p.heldSince = time.Now()
	}
	p.held = why
}

func (p *place) hide(yes bool) {
	if !p.hidden && yes {
		p.hiddenSince = time.Now()
	}
	p.hidden = yes
}

// mendMesh repairs everything in the mesh that does not belong to one machine.
func (w *world) mendMesh() {
	if w.mesh == nil {
		return
	}
	w.mesh.mood, w.mesh.lookTakes, w.mesh.backFails = providerMood{}, 0, false
	for _, p := range w.mesh.places {
		p.hold("")
		p.hide(false)
		p.silenced, p.inhibited, p.quiet = false, false, false
	}
	for _, m := range w.mesh.members {
		m.dark, m.darkLeading, m.mute = false, false, false
	}
	w.elect()
}

// calmMesh: in a healthy world, only what a person must check may be on record.
func (w *world) calmMesh() {
	if w.mesh == nil {
		return
	}
	for n, r := range w.leaderRecords() {
		if r.Phase != remediations.PhaseExhausted {
			w.fail("S2: a leader's repair is left over on %s: %s", n, r.Encode())
		}
	}
}
