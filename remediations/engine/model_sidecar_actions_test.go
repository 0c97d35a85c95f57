package engine

import (
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// anySidecars adds the policy about sidecars, as an operator might write it.
func anySidecars(t *rapid.T, c *remediations.Config) {
	p := withSidecars(c).Policy(sidecarPolicy)
	p.Mode = rapid.SampledFrom([]remediations.Mode{remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeEnforce, remediations.ModeObserve}).Draw(t, "sidecars' mode")
	p.Plan[0].Attempts = rapid.IntRange(1, 3).Draw(t, "sidecars' attempts")
	p.ProofFor = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second}).Draw(t, "sidecars' proof for")
	p.RepairCordoned = rapid.Bool().Draw(t, "sidecars on cordoned nodes")
	c.Limits.Sidecars = rapid.SampledFrom([]int{1, 2, 10}).Draw(t, "sidecars at once")
}

// anyPod returns one of the pods with a sidecar. Nil: there is none.
func (l *life) anyPod(t *rapid.T) *gated {
	names := l.w.podNames()
	if len(names) == 0 {
		return nil
	}
	return l.w.pod(rapid.SampledFrom(names).Draw(t, "pod"))
}

func (l *life) sidecars() map[string]func(*rapid.T) {
	pod := func(f func(*rapid.T, *gated)) func(*rapid.T) {
		return l.do(func(t *rapid.T, _ *world) {
			if g := l.anyPod(t); g != nil {
				f(t, g)
			}
		})
	}
	all := func(f func(*rapid.T, *gates)) func(*rapid.T) {
		return l.do(func(t *rapid.T, w *world) {
			if w.gates != nil {
				f(t, w.gates)
			}
		})
	}
	return map[string]func(*rapid.T){
		"its process restarts":     pod(func(_ *rapid.T, g *gated) { g.close() }),
		"somebody closes it":       pod(func(_ *rapid.T, g *gated) { g.closeByHand() }),
		"somebody approves it":     pod(func(_ *rapid.T, g *gated) { g.letGo() }),
		"it is wedged, or is not":  pod(func(_ *rapid.T, g *gated) { g.wedged = !g.wedged }),
		"it hides, or answers":     pod(func(_ *rapid.T, g *gated) { g.hide(!g.hidden) }),
		"it answers 500, or not":   pod(func(_ *rapid.T, g *gated) { g.failing = !g.failing }),
		"its alert is silenced":    pod(func(_ *rapid.T, g *gated) { g.silenced = !g.silenced }),
		"its alert is inhibited":   pod(func(_ *rapid.T, g *gated) { g.inhibited = !g.inhibited }),
		"its alert is posted":      pod(func(_ *rapid.T, g *gated) { l.w.postPod(g.name) }),
		"its owner holds it":       pod(func(_ *rapid.T, g *gated) { g.hold(map[bool]string{true: "SeiNode is paused"}[g.held == ""]) }),
		"its pod moves":            pod(func(t *rapid.T, g *gated) { l.w.replacePod(g.name, pick(t)) }),
		"its node is not known":    pod(func(_ *rapid.T, g *gated) { g.node = "" }),
		"a node's gates all close": l.do(func(t *rapid.T, w *world) { w.closeOn(pick(t)) }),
		"a person cancels it": pod(func(_ *rapid.T, g *gated) {
			for _, r := range l.w.sidecarRecords() {
				if n := l.w.nodes[g.node]; r.Pod.Name == g.name && n != nil && n.Annotations[remediations.CancelKey] == "" && modelRegistry.ReadJournal(n).Records[podKey(g.name)] != nil {
					l.w.gates.cancels++
					l.w.cancelled[r.ID] = time.Now()
					l.w.edit(g.node, edit(remediations.CancelKey, r.ID))
				}
			}
		}),
		"the mood of sidecars": all(func(t *rapid.T, g *gates) {
			g.mood = rapid.SampledFrom([]providerMood{{}, {}, {refuse: true}, {cut: true}, {idle: true}, {before: 8 * time.Second}, {before: 12 * time.Second}, {after: 20 * time.Second}, {after: time.Hour}}).Draw(t, "mood")
		}),
		"a look at sidecars takes": all(func(t *rapid.T, g *gates) {
			g.lookTakes = rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Second}).Draw(t, "time")
		}),
		"where pods are cannot be read, or can": all(func(_ *rapid.T, g *gates) { g.hostsHang = !g.hostsHang }),
	}
}

// mendSidecars repairs everything that does not belong to one sidecar.
func (w *world) mendSidecars() {
	if w.gates == nil {
		return
	}
	w.gates.mood, w.gates.lookTakes, w.gates.hostsHang = providerMood{}, 0, false
	for _, name := range w.podNames() {
		g := w.pod(name)
		g.hold("")
		g.hide(false)
		g.wedged, g.failing, g.silenced, g.inhibited, g.quiet = false, false, false, false, false
		if w.nodes[g.node] == nil {
			w.reschedule(g.node)
		}
		r := modelRegistry.ReadJournal(w.nodes[g.node]).Records[podKey(name)]
		if g.byHand || (r != nil && r.Phase == remediations.PhaseExhausted) {
			g.letGo() // a person has checked it
		}
	}
}

// calmSidecars: in a healthy world all sidecars are ready in the end, and no sidecar is on record.
func (l *life) calmSidecars() {
	w := l.w
	if w.gates == nil {
		return
	}
	w.do(w.mendSidecars) // what the last reboot closed, or the last attempt exhausted
	w.pass(5 * time.Minute)
	w.do(func() {
		p := w.config.Policy(sidecarPolicy)
		for _, name := range w.podNames() {
			g := w.pod(name)
			n := w.nodes[g.node]
			if _, paused := n.Annotations[remediations.PauseKey]; paused {
				g.letGo() // an unreadable cancel was written, and the leader read it only in the calm
			}
			j := modelRegistry.ReadJournal(n)
			// A backup that was applied leaves marks whose owner is not known. They hold as those of a
			// person do.
			held := w.config.HoldWhen.Leaving(n, j, time.Now()) != "" || j.Malformed != nil || (n.Spec.Unschedulable && !p.RepairCordoned)
			if !g.open && p.Mode == remediations.ModeEnforce && w.gates.cancels == 0 && !held {
				w.fail("S0: the sidecar of %s on %s waits since %s: %v; holds %v", name, g.node, g.since, j.Records[podKey(name)], mustLedger(w).Status.Holds)
			}
			g.letGo()
		}
	})
	w.pass(5 * time.Minute)
	w.do(func() {
		for k, r := range w.sidecarRecords() {
			w.fail("S0: a sidecar's record is left over: %s %s", k, r.Encode())
		}
	})
}
