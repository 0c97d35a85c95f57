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

// target identifies what a call or an observation is about: a node, or a sidecar or location whose
// repair record is on that Node.
type target struct {
	node string
	kind remediations.Kind
	// name is the target's name among the targets of its kind (remediations.Subject). It is empty
	// for the node itself.
	name string
}

// targetMemory is what the engine remembers about a target between passes. All of it may be lost.
type targetMemory struct {
	call *lifecycle.Call
	// wellSince is when the target became healthy, and is zero if the target is not healthy.
	// wellHeard has, for each replica of Alertmanager, when the last Watchdog alert before
	// wellSince arrived there.
	wellSince time.Time
	wellHeard alerts.Heard
	// newID is the ID for the next repair. It is kept until a record contains it, because the
	// ledger counts repairs by ID. So a write that is repeated after a conflict does not count
	// twice.
	newID   string
	looking bool
	// seen is the last observation of the target, with the type that its kind uses. It is nil
	// before the first one. seenAt is when that observation began.
	seen   any
	seenAt time.Time
	// took is the duration of that observation.
	took time.Duration
	// emitted are the Events that were already sent, by repair and reason.
	emitted Emitted
	// waits is true once people were informed that the sidecar is not ready. pass is the number of
	// the last pass that decided about the target.
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

// forgetTargets drops the memory of targets that this pass did not decide about.
func (e *Engine) forgetTargets() {
	for of, m := range e.targets {
		if m.pass != e.passes && !m.looking && (m.call == nil || m.call.Outcome != "") {
			delete(e.targets, of)
		}
	}
	now := e.Clock.Now()
	maps.DeleteFunc(e.gates, func(_ string, g *sidecar.Observation) bool { return !g.Followed(now) })
}

// nextID returns the ID for the next repair.
func (m *targetMemory) nextID(j remediations.Journal, fresh func() string) string {
	if m.newID == "" || j.Knows(m.newID) {
		m.newID = fresh()
	}
	return m.newID
}

// found updates wellSince, the time when the target became healthy.
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

// stateOf returns the input for a decision about one of the node's targets: the state of the node,
// and what the engine remembers about the target.
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

// recheck makes the next pass start no later than the decision requires.
func (p *pass) recheck(d lifecycle.Decision) {
	if !d.Recheck.IsZero() && d.Recheck.Before(p.next) {
		p.next = d.Recheck
	}
}

// maxLooks bounds how many targets of one kind are observed at the same time.
const maxLooks = 10

// observe runs look in another goroutine. The function that look returns then runs in the loop's
// goroutine, and handles the result.
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

// tallied counts a repair that is on record, and the reason that holds it.
func (p *pass) tallied(r *remediations.Record, d lifecycle.Decision) {
	if r != nil {
		p.tally.repairs[[2]string{r.Policy, string(r.Phase)}]++
	}
	if d.Verb == lifecycle.VerbHold && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(d.Reason)}]++
	}
}

// label adds the phase label to the change c, if c changes one of the repair records on the Node.
// The label shows the phase of the repair as it is after the change.
func label(g remediations.Registry, n *corev1.Node, c *NodeChange) {
	occupying := false
	for key := range c.Annotations {
		occupying = occupying || remediations.OccupyingKey(key)
	}
	if !occupying {
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
