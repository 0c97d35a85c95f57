package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// target is what a call or a look is about: the node that carries its record, and what of that node it is.
type target struct {
	node string
	kind remediations.Kind
	// name tells it from the others of its kind: remediations.Subject; the node itself needs none.
	name string
}

// repairMemory is what is remembered of the repair of any target.
type repairMemory struct {
	call *lifecycle.Call
	// wellSince is since when the target is well without a break, wellHeard when the Watchdog had last come then.
	wellSince time.Time
	wellHeard alerts.Heard
	// newID is kept until a record bears it: the ledger counts repairs by id, and a write that met somebody else's must
	// not count twice.
	newID string
}

// targetMemory is what the engine remembers, between passes, of a target that is not the node itself. All of it may be lost.
type targetMemory struct {
	repairMemory
	looking bool
	// seen is what was last seen of it, as its kind sees, when looking began at seenAt; nil: nothing yet.
	seen   any
	seenAt time.Time
	// took is how long that look took.
	took    time.Duration
	emitted Emitted
	// waits says that people were told that it waits.
	waits bool
	pass  int
}

func (e *Engine) rememberTarget(of target) (m *targetMemory, known bool) {
	m, known = e.targets[of]
	if !known {
		m = &targetMemory{emitted: Emitted{}}
		e.targets[of] = m
	}
	return m, known
}

// forgetTargets drops what is remembered of targets that this pass did not meet.
func (e *Engine) forgetTargets() {
	for of, m := range e.targets {
		if m.pass != e.passes && !m.looking && (m.call == nil || m.call.Outcome != "") {
			delete(e.targets, of)
		}
	}
	now := e.Clock.Now()
	maps.DeleteFunc(e.gates, func(_ string, g *sidecar.Observation) bool { return !g.Followed(now) })
}

// nextID is the id of the repair that may begin.
func (m *repairMemory) nextID(j remediations.Journal, fresh func() string) string {
	if m.newID == "" || j.Knows(m.newID) {
		m.newID = fresh()
	}
	return m.newID
}

// found remembers since when the target is well.
func (m *repairMemory) found(d lifecycle.Decision, at time.Time) {
	switch {
	case !d.Well:
		m.wellSince = time.Time{}
	case m.wellSince.IsZero():
		m.wellSince, m.wellHeard = at, d.Heard
	default:
		m.wellHeard = m.wellHeard.And(d.Heard)
	}
}

// stateOf gives the node's state what is remembered of one of its targets.
func (p *pass) stateOf(n *corev1.Node, m *targetMemory) *lifecycle.State {
	m.pass = p.passes
	m.forgetTorn(p.now)
	s := p.state(n)
	s.LookTook = m.took
	s.Call, s.NewID, s.WellSince, s.WellHeard = m.call, m.nextID(s.Journal, p.NewID), m.wellSince, m.wellHeard
	s.Survey, s.Lease, s.Replacement, s.Pods = nil, nil, nil, nil
	return s
}

// recheck has the next pass no later than the decision wants it.
func (p *pass) recheck(d lifecycle.Decision) {
	if !d.Recheck.IsZero() && d.Recheck.Before(p.next) {
		p.next = d.Recheck
	}
}

// maxLooks bounds the looks at targets of one kind under way at once.
const maxLooks = 10

// observe looks at the target beside the loop. look gives what is done with what it saw, in the loop.
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

// calling is one call that may leave this process.
type calling struct {
	of            target
	step, attempt string
	// provider is the one that is asked; empty: the step needs none.
	provider string
	// trail is what the log says of it.
	trail Trail
	// lets says whether the target, by its Node as it is now, still lets the call go out.
	lets func(ctx context.Context, live *corev1.Node) error
	// act makes it, and asks mayStill at the very last moment. before and after come beside the loop, too, and may be nil.
	act    func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error)
	before func(ctx context.Context)
	after  func(ctx context.Context, call *lifecycle.Call)
}

// send lets the call go out beside the loop. It may be made only while this process leads and its intent is young.
func (p *pass) send(c calling, m *repairMemory) {
	if p.twice(c, m) {
		return
	}
	m.call = &lifecycle.Call{IntentID: c.attempt}
	p.underway++
	c.trail.Log(p.Log).Info("making the call", "node", c.of.node, "step", c.step)
	var look lookedLast
	mayStill := look.over(p.mayStill(c.of.node, c.lets))
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.CallTimeout)
		defer cancel()
		if c.before != nil {
			c.before(ctx)
		}
		outcome, err := p.act(ctx, c, &look, mayStill)
		call := lifecycle.Call{IntentID: c.attempt, Outcome: outcome, Withheld: look.withheld()}
		if call.Withheld == "" && look.givesBack(outcome, err) {
			call.Withheld = remediations.ReasonCallWithheld
			if errors.Is(err, ErrPassing) && !look.asked() {
				err = fmt.Errorf("%s could not read what it needs for the step %s: %w", cmp.Or(c.provider, "Drydock"), c.step, err)
			}
		}
		if err != nil {
			call.Why, call.Stop, call.Alone = err.Error(), errors.Is(err, ErrAccount), look.alone(err)
		}
		if c.after != nil {
			c.after(ctx, &call)
		}
		p.calls <- called{of: c.of, call: call, step: c.step, provider: c.provider, trail: c.trail}
	})
}

// act makes the call. Where it could not read what it needs, it is made again while its intent is young: nothing was done yet, and an
// API server that is slow for a moment must not cost an attempt.
func (p *pass) act(ctx context.Context, c calling, look *lookedLast, mayStill func() error) (outcome remediations.CallOutcome, err error) {
	for {
		outcome, err = c.act(ctx, mayStill)
		if outcome != remediations.CallRefused || !errors.Is(err, ErrPassing) || errors.Is(err, ErrAccount) || look.asked() {
			return outcome, err
		}
		c.trail.Log(p.Log).Info("the call could not read what it needs", "node", c.of.node, "step", c.step, "why", err.Error())
		again := p.Clock.NewTimer(ActAgain)
		select {
		case <-again.C():
		case <-p.ctx.Done():
		case <-ctx.Done():
		}
		again.Stop()
		if p.ctx.Err() != nil || ctx.Err() != nil || p.core.young(p.now, p.Clock.Now()) != nil {
			return outcome, err
		}
	}
}

// putOf writes what the decision asks to be written, and says whether it was.
func (p *pass) putOf(s *lifecycle.State, key string, d lifecycle.Decision) bool {
	c := change(s, key, d)
	if c == nil {
		return false
	}
	_, err := p.write(p.ctx, s.Node, *c)
	if err == nil {
		return true
	}
	p.failed = p.failed || (!errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound))
	return false
}

// tallied counts a repair that is on record, and what holds it.
func (p *pass) tallied(r *remediations.Record, d lifecycle.Decision) {
	if r != nil {
		p.tally.repairs[[2]string{r.Policy, string(r.Phase)}]++
	}
	if d.Verb == lifecycle.VerbHold && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(d.Reason)}]++
	}
}

// label has the change of a Node say the phase that its records say after it, where it changes one of those.
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
