package engine

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// target is a node, or a sidecar or location whose repair record is on that node.
type target struct {
	node string
	kind remediations.Kind
	// name is empty for the node itself.
	name string
}

// targetMemory is what the engine remembers between passes. All of it may be lost.
type targetMemory struct {
	call *lifecycle.Call
	// wellSince is zero if the target is not healthy. wellHeard has, for each Alertmanager, when
	// the last Watchdog alert before wellSince arrived there.
	wellSince time.Time
	wellHeard alerts.Heard
	// newID is the ID for the next repair. It is kept until a record has it, because the ledger
	// counts repairs by ID: a write that is repeated after a conflict does not count twice.
	newID   string
	looking bool
	// seen has the type that the kind uses, or is nil. seenAt is when that observation began.
	seen    any
	seenAt  time.Time
	took    time.Duration
	emitted Emitted
	// waits is true once people were informed that the sidecar is not ready. pass is the last pass
	// that decided about the target.
	waits bool
	pass  int
}

func (e *Engine) rememberTarget(of target) (m *targetMemory, known bool) {
	if of.kind == remediations.KindNode {
		return &e.remember(of.node).targetMemory, true
	}
	m, known = e.targets[of]
	if !known {
		m = &targetMemory{}
		e.targets[of] = m
	}
	return m, known
}

func (e *Engine) forgetTargets() {
	for of, m := range e.targets {
		if m.pass != e.passes && !m.looking && (m.call == nil || m.call.Outcome != "") {
			delete(e.targets, of)
		}
	}
	now := e.Clock.Now()
	maps.DeleteFunc(e.gates, func(_ string, g *sidecar.Observation) bool { return !g.Followed(now) })
}

func (m *targetMemory) nextID(j remediations.Journal, fresh func() string) string {
	if m.newID == "" || j.Knows(m.newID) {
		m.newID = fresh()
	}
	return m.newID
}

func (m *targetMemory) found(d lifecycle.Decision, at time.Time) {
	switch {
	case !d.Well:
		m.wellSince = time.Time{}
	case m.wellSince.IsZero():
		m.wellSince, m.wellHeard = at, d.Heard
	default:
		m.wellHeard = m.wellHeard.And(d.Heard)
	}
}

func (p *pass) stateOf(n *corev1.Node, of target, m *targetMemory) *lifecycle.State {
	if of.kind == remediations.KindNode {
		return p.state(n)
	}
	m.pass, p.now = p.passes, p.Clock.Now()
	m.forgetTorn(p.now)
	s := p.state(n)
	s.LookTook = m.took
	s.Call, s.NewID, s.WellSince, s.WellHeard = m.call, m.nextID(s.Journal, p.NewID), m.wellSince, m.wellHeard
	s.Survey, s.Lease, s.Replacement, s.Pods = nil, nil, nil, nil
	return s
}

func (p *pass) recheck(d lifecycle.Decision) {
	if !d.Recheck.IsZero() && d.Recheck.Before(p.next) {
		p.next = d.Recheck
	}
}

// maxLooks bounds the targets of one kind that are observed at the same time.
const maxLooks = 10

// observe runs look in another goroutine, and the function that look returns in the loop.
func (p *pass) observe(of target, m *targetMemory, look func(ctx context.Context, began time.Time) (seen func())) {
	if m.looking || p.looks[of.kind] >= maxLooks {
		return
	}
	m.looking = true
	p.looks[of.kind]++
	began := p.Clock.Now()
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		seen := look(ctx, began)
		p.enqueue(func() {
			m.looking = false
			p.looks[of.kind]--
			seen()
		})
	})
}

func (p *pass) tallied(r *remediations.Record, d lifecycle.Decision) {
	if r != nil {
		p.tally.repairs[[2]string{r.Policy, string(r.Phase)}]++
	}
	if d.Verb == lifecycle.VerbHold && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(d.Reason)}]++
	}
}

// label adds the phase label as it is after the change c. The node's own decision also corrects a
// label that the records contradict, because admission and the breakers use the label.
func label(g remediations.Registry, n *corev1.Node, j remediations.Journal, own bool, c *NodeChange) {
	occupying := false
	for key := range c.Annotations {
		occupying = occupying || remediations.OccupyingKey(key)
	}
	if !occupying && (!own || j.Labelled(n)) {
		return
	}
	after := maps.Clone(n.Annotations)
	if after == nil {
		after = map[string]string{}
	}
	for k, v := range c.Annotations {
		if delete(after, k); v != nil {
			after[k] = *v
		}
	}
	if c.Labels == nil {
		c.Labels = map[string]*string{}
	}
	c.Labels[remediations.PhaseLabel] = nil
	if phase := string(g.LabelFor(after)); phase != "" {
		c.Labels[remediations.PhaseLabel] = &phase
	}
}
