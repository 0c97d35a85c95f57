package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Locations looks at the leaders of a mesh's locations, and moves them.
type Locations interface {
	// Leads says which node leads the location by what the cache knows; empty: none, or it cannot be said.
	Leads(location string) (node string)
	// LeadsAll is Leads for many locations, by what the cache knows now. To ask it costs no look at the whole fleet.
	LeadsAll() func(location string) (node string)
	// Look looks live. It does not fail: what it could not find out is in the answer. It changes nothing.
	Look(ctx context.Context, location string) remediations.LocationSight
	// Move makes the change if the location still is as the move says, asking mayStill at the very last moment before each
	// key is written. The outcome is never empty; the error says why it is not accepted.
	Move(ctx context.Context, m remediations.Move, mayStill func() error) (remediations.CallOutcome, error)
	// PutBack restores what Move recorded in Before, where it still is as Move left it. It may be repeated.
	PutBack(ctx context.Context, m remediations.Move) error
}

// location decides about the location that the node leads, or led when its repair began, and carries the decision out.
func (p *passing) location(n *corev1.Node) {
	l, ok := p.Config.LocationOf(p.journal(n))
	if !ok {
		return
	}
	p.now = p.Clock.Now()
	s := p.locationState(n, l)
	d := p.core.decideLocation(s, p.now)
	if d.Ask.Heartbeats {
		p.readHeartbeats()
		s = p.locationState(n, l)
		d = p.core.decideLocation(s, p.now)
	}
	p.carryLocation(s, d)
}

func (p *passing) locationState(n *corev1.Node, l remediations.Location) *remediations.LocationState {
	m, _ := p.rememberTarget(target{n.Name, remediations.KindLocation, l.Name})
	return &remediations.LocationState{State: p.stateOf(n, m), Location: l, Sight: m.sight}
}

func (p *passing) carryLocation(s *remediations.LocationState, d remediations.Decision) {
	n := s.Node
	of := target{n.Name, remediations.KindLocation, s.Name}
	m, _ := p.rememberTarget(of)
	m.found(d, p.now)
	if d.Ask.Alerts {
		p.askAlerts(p.remember(n.Name))
		p.want(s.State, s.Record, d)
	}
	p.waiting = p.waiting || d.Verb == remediations.Keep
	if d.Ask.Sighting && p.Locations != nil {
		p.observe(of, m, func(ctx context.Context, began time.Time) func() {
			g := p.Locations.Look(ctx, s.Name)
			g.At = began
			return func() { m.sight = &g }
		})
	}
	p.recheck(d)
	switch d.Verb {
	case remediations.Issue:
		p.promote(s, m, d)
	case remediations.Resume:
		p.putBack(s, m, s.Record, d)
	case remediations.Verify:
		if p.putOf(s.State, remediations.LocationKey, d) {
			m.call, m.sight = nil, nil // what was seen before the call proves nothing
			p.tell(n.Name, d.Record.Intent.ID, Event{Reason: "RepairVerifying", Action: d.Record.Intent.ID, Note: d.Message})
			p.tellSuccessor(d.Record)
		}
	case remediations.Keep:
		p.keepLocation(s, d)
	case remediations.End:
		p.endLocation(s, d)
	case remediations.Look:
		if r := d.Record; d.Policy != nil && (r != nil || s.Record != nil) {
			if r == nil {
				r = s.Record
			}
			p.fleet.OccupyLocation(n.Name, r, d.Policy.Mode == remediations.ModeObserve)
		}
		p.putOf(s.State, remediations.LocationKey, d)
	case remediations.Wait, remediations.Drop, remediations.Rest, remediations.Reset:
		p.putOf(s.State, remediations.LocationKey, d)
	}
	p.countLocation(s, d)
}

// promote takes the slot, writes the intent, and lets the move go out, or the moves be put back; each only after the one
// before is durable.
func (p *passing) promote(s *remediations.LocationState, m *targetMemory, d remediations.Decision) {
	n, r := s.Node, d.Record
	l := p.ledger.Clone()
	l.Reserve(p.Config, n, r, p.now)
	if p.save(l) != nil {
		return
	}
	p.fleet.OccupyLocation(n.Name, r, false)
	if p.Clock.Now().Sub(p.now) > p.core.intentGood || !p.putOf(s.State, remediations.LocationKey, d) {
		return // the slot stays until sweep has seen that nothing came of it
	}
	if s.Record == nil || s.Record.Intent == nil {
		p.tell(n.Name, r.ID, Event{Reason: "RepairStarted", Action: r.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, d.Policy.Name, p.causeOf(s.State, r))})
	}
	if d.PutBack != nil {
		p.putBack(s, m, r, d)
		p.tell(n.Name, r.PutBackID(), Event{Warning: true, Reason: "RepairStepIssued", Action: r.PutBackID(), Note: d.Message})
		return
	}
	p.move(s, m, r)
	p.tell(n.Name, r.Intent.ID, Event{Warning: true, Reason: "RepairStepIssued", Action: r.Intent.ID, Note: d.Message})
}

// move lets the move go out.
func (p *passing) move(s *remediations.LocationState, m *targetMemory, r *remediations.Record) {
	intent, move := *r.Intent, r.Moves[len(r.Moves)-1]
	p.send(calling{
		of: target{s.Node.Name, remediations.KindLocation, move.Location}, step: r.Step.Name, attempt: intent.ID,
		about: []any{"location", move.Location, "successor", move.To},
		lets: func(_ context.Context, live *corev1.Node) error {
			others, err := p.others(live, move, false)
			if err != nil {
				return err
			}
			return p.core.mayStillMove(live, others, intent.ID)
		},
		act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
			return p.Locations.Move(ctx, move, mayStill)
		},
	}, &m.repairMemory)
}

// others reads live all nodes that the move is about but the one whose repair it is. With mayBeGone a Node that does not exist
// any more is left out: its key went with it, so there is nothing to put back there.
func (p *passing) others(leader *corev1.Node, m remediations.Move, mayBeGone bool) ([]*corev1.Node, error) {
	names := map[string]bool{m.To: true, m.From: true}
	for name := range m.Before {
		names[name] = true
	}
	delete(names, leader.Name)
	ctx, cancel := context.WithTimeout(p.ctx, lastLook)
	defer cancel()
	var out []*corev1.Node
	for name := range names {
		live, err := p.Fleet.Node(ctx, name)
		if mayBeGone && errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, remediations.Withhold(remediations.Blind, "looking at node %s once more: %w", name, err)
		}
		out = append(out, live)
	}
	return out, nil
}

func (p *passing) keepLocation(s *remediations.LocationState, d remediations.Decision) {
	node, was := s.Node.Name, s.Record
	r := d.Record
	if r == nil {
		r = was
	}
	if d.Reason == remediations.Observing && r != nil {
		p.fleet.OccupyLocation(node, r, true)
	}
	wrote := p.putOf(s.State, remediations.LocationKey, d)
	if wrote && d.Record != nil {
		if was == nil {
			p.tell(node, r.ID, Event{Reason: "RepairPending", Action: r.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", r.ID, r.Policy, p.causeOf(s.State, r))})
		}
		if was != nil && was.Phase.InFlight() && !r.Phase.InFlight() {
			p.releaseLocation(node)
		}
	}
	if d.Fleetwide {
		p.holds[d.Reason] = d.Message
		return
	}
	if d.Record == nil || wrote {
		id := s.Name
		if r != nil {
			id = r.ID
		}
		p.tell(node, id+"/"+string(d.Reason), Event{Warning: true, Reason: "RepairHeld", Action: string(d.Reason) + "-" + id, Note: string(d.Reason) + ": " + d.Message})
	}
}

func (p *passing) endLocation(s *remediations.LocationState, d remediations.Decision) {
	n, e := s.Node, d.Ended
	if !p.putOf(s.State, remediations.LocationKey, d) {
		return
	}
	p.ended(e)
	p.tell(n.Name, e.ID, Event{
		Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID,
		Note: fmt.Sprintf("repair %s of the leader of location %s by policy %s after %s (%s): %s", e.ID, e.Location, e.Policy, e.Ended.Sub(e.Began).Round(time.Second), strings.Join(e.Steps, ", "), d.Message),
	})
	p.fleet.VacateLocation(n.Name)
	p.again = true // another location may have waited for its turn
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	freed := l.ReleaseLocation(n.Name)
	l.Finished(e.Policy, e.ID, e.Outcome)
	if freed || l.Failing(e.Policy) != p.ledger.Failing(e.Policy) || e.Outcome == remediations.OutcomeExhausted {
		_ = p.save(l) // a failure is logged, and the ledger read again
	}
}

// releaseLocation frees the slot of the leader's repair on the node; a failure leaves it to sweep.
func (p *passing) releaseLocation(node string) {
	p.fleet.VacateLocation(node)
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	if l.ReleaseLocation(node) {
		_ = p.save(l)
	}
	p.again = true // another location may have waited for its turn
}

func (p *passing) countLocation(s *remediations.LocationState, d remediations.Decision) {
	r := s.Record
	if d.Record != nil {
		r = d.Record
	} else if d.Verb == remediations.End || d.Verb == remediations.Drop {
		r = nil
	}
	p.tallied(r, d)
}
