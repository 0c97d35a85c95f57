package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
)

// Locations observes which node leads each location of a mesh, and moves the leadership to another
// node.
type Locations interface {
	// Leads returns the node that leads the location, from the cache. It is empty if that is
	// unknown.
	Leads(location string) (node string)
	// LeadsAll reads the cache once. The returned function then does the same as Leads.
	LeadsAll() func(location string) (node string)
	// Look observes the location from the API server. It does not fail: the observation names what
	// could not be read.
	Look(ctx context.Context, location string) location.Observation
	// Move moves the leadership, if the location is still as m describes it. It calls mayStill
	// right before each write. The outcome is never empty. The error is why the move was not
	// accepted.
	Move(ctx context.Context, m remediations.Move, mayStill func() error) (remediations.CallOutcome, error)
	// PutBack restores the annotations from before a Move. It changes only those that still have
	// the value that Move wrote. It may be repeated.
	PutBack(ctx context.Context, m remediations.Move) error
}

// locations are those of a mesh. A location belongs to the node that leads it, or that led it when
// its repair began.
var locations = kind{
	of:      remediations.KindLocation,
	carrier: (*Engine).leads,
	decide: func(e *Engine, t *subject, now time.Time) lifecycle.Decision {
		seen, _ := t.m.seen.(*location.Observation)
		return e.core.decideLocation(&location.State{State: t.State, Subject: t.Subject, Seen: seen}, now)
	},
	look: func(p *pass, t *subject, _ lifecycle.Decision) func(context.Context, time.Time) any {
		if p.Locations == nil {
			return nil
		}
		return func(ctx context.Context, began time.Time) any {
			g := p.Locations.Look(ctx, t.Name)
			g.At = began
			return &g
		}
	},
	call: func(p *pass, t *subject, d lifecycle.Decision) string {
		if d.PutBack != nil {
			p.putBack(t, d.Record, d)
			return d.Record.PutBackID()
		}
		return p.move(t, d.Record)
	},
	resume: func(p *pass, t *subject, d lifecycle.Decision) { p.putBack(t, t.Record, d) },
	slots: &slots{
		occupy: func(p *pass, t *subject, d lifecycle.Decision) {
			p.occupyLocation(t, d, d.Verb == lifecycle.VerbHold)
		},
		next: func(p *pass, t *subject, d lifecycle.Decision) {
			p.occupyLocation(t, d, d.Policy.Mode == remediations.ModeObserve)
		},
		vacate:   func(p *pass, node string) { p.fleet.VacateLocation(node) },
		giveBack: func(p *pass, k *kind, t *subject, _ lifecycle.Decision) { p.release(k, t.of.node, t.Record.ID) },
		ended: func(p *pass, l *ledger.Ledger, _ *subject, d lifecycle.Decision) bool {
			e := d.Ended
			l.Finished(e.Policy, e.ID, e.Outcome)
			return l.Failing(e.Policy) != p.ledger.Failing(e.Policy) || e.Outcome == remediations.OutcomeExhausted
		},
	},
	ofWhat:   func(e *remediations.Entry) string { return " of the leader of location " + e.Location },
	verified: (*pass).emitLeaderMoved,
	counted:  func(p *pass, _ *subject, r *remediations.Record, d lifecycle.Decision, _ bool) { p.tallied(r, d) },
}

// wouldBe means that observe mode holds the repair, which would otherwise run.
func (p *pass) occupyLocation(t *subject, d lifecycle.Decision, wouldBe bool) {
	if r := cmp.Or(d.Record, t.Record); r != nil {
		p.fleet.OccupyLocation(t.of.node, r, wouldBe)
	}
}

func (p *pass) move(t *subject, r *remediations.Record) string {
	intent, move := *r.Intent, r.Moves[len(r.Moves)-1]
	p.send(calling{
		of: t.of, step: r.Step.Name, attempt: intent.ID,
		trail: trailOf(r),
		lets: func(_ context.Context, live *corev1.Node) error {
			others, err := p.others(live, move, false)
			if err != nil {
				return err
			}
			return p.core.mayStillMove(p.Config, live, others, intent.ID)
		},
		act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
			return p.Locations.Move(ctx, move, mayStill)
		},
	}, t.m)
	return intent.ID
}

// others reads from the API server the other nodes that the move changes. If mayBeGone is true, it
// skips deleted Nodes: they have no keys to restore.
func (p *pass) others(leader *corev1.Node, m remediations.Move, mayBeGone bool) ([]*corev1.Node, error) {
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
			return nil, remediations.Withhold(remediations.ReasonBlind, "reading Node %s right before the move: %w", name, err)
		}
		out = append(out, live)
	}
	return out, nil
}

const putBackStep = "put-back-leader"

// putBack undoes the record's moves, newest first. After a crash the next leader of Drydock repeats
// it.
func (p *pass) putBack(t *subject, r *remediations.Record, d lifecycle.Decision) {
	if p.Locations == nil {
		return // without a provider of locations, the repair is held until its deadline and then given up
	}
	id, node, moves := r.PutBackID(), t.of.node, d.PutBack
	t.m.call = &lifecycle.Call{IntentID: id}
	p.underway++
	trailOf(r).Log(p.Log).Info("putting mesh leadership back", "node", node)
	within := min(p.CallTimeout, r.Deadline.Sub(p.Clock.Now()))
	p.Beside(func() {
		ctx, cancel := context.WithTimeout(p.ctx, within)
		defer cancel()
		call := lifecycle.Call{IntentID: id, Outcome: remediations.CallAccepted}
		for _, move := range moves {
			if err := p.putBackOne(ctx, node, id, move); err != nil {
				call.Outcome, call.Why, call.Withheld = remediations.CallUnknown, err.Error(), remediations.WithheldFor(err, "")
				break
			}
		}
		p.calls <- called{of: t.of, call: call, step: putBackStep, trail: trailOf(r)}
	})
}

func (p *pass) putBackOne(ctx context.Context, node, id string, m remediations.Move) error {
	look, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	live, err := p.Fleet.Node(look, node)
	if err != nil {
		return remediations.Withhold(remediations.ReasonBlind, "reading Node %s right before the put-back: %w", node, err)
	}
	others, err := p.others(live, m, true)
	if err != nil {
		return err
	}
	if err := p.core.mayStillPutBack(p.Config, live, others, id); err != nil {
		return err
	}
	return p.Locations.PutBack(ctx, m)
}

func (e *Engine) leads(ctx context.Context) func(fingerprint, location string) string {
	if e.Locations == nil {
		return func(string, string) string { return "" }
	}
	// Both are computed only when needed, because most polls bring no alert about a location.
	leads := sync.OnceValue(e.Locations.LeadsAll)
	repairing := sync.OnceValue(func() (nodes []*corev1.Node) {
		for _, m := range e.roster.Concerned() {
			if _, ok := m.Node.Annotations[remediations.LocationKey]; ok {
				nodes = append(nodes, m.Node)
			}
		}
		return nodes
	})
	carrier := intake.OfLocations(repairing, func(location string) string { return leads()(location) })
	return func(fingerprint, location string) string {
		node, _ := carrier(ctx, remediations.AlertPrefix+fingerprint, location) // the carrier reads only the cache, which returns no error
		return node
	}
}

func (p *pass) emitLeaderMoved(d lifecycle.Decision) {
	r := d.Record
	if r.Intent.Outcome != remediations.CallAccepted {
		return
	}
	m := r.Moves[len(r.Moves)-1]
	p.emitOnce(m.To, r.Intent.ID, Event{Reason: "LeaderMoved", Of: trailOf(r), Action: r.Intent.ID, Note: fmt.Sprintf("repair %s by policy %s gave %s the mesh leadership of location %s, which %s had", r.ID, r.Policy, m.To, m.Location, m.From)})
}
