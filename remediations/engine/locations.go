package engine

import (
	"context"
	"errors"
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

// locations are those of the mesh, each on the node that leads it, or led it when its repair began.
var locations = kind{
	of:      remediations.KindLocation,
	carrier: (*Engine).leads,
	decide: func(e *Engine, t *subject, now time.Time) remediations.Decision {
		seen, _ := t.m.seen.(*remediations.LocationSight)
		return e.core.decideLocation(&remediations.LocationState{State: t.State, Subject: t.Subject, Sight: seen}, now)
	},
	look: func(p *passing, t *subject, _ remediations.Decision) func(context.Context, time.Time) any {
		if p.Locations == nil {
			return nil
		}
		return func(ctx context.Context, began time.Time) any {
			g := p.Locations.Look(ctx, t.Name)
			g.At = began
			return &g
		}
	},
	call: func(p *passing, t *subject, d remediations.Decision) string {
		if d.PutBack != nil {
			p.putBack(t, d.Record, d)
			return d.Record.PutBackID()
		}
		return p.move(t, d.Record)
	},
	resume: func(p *passing, t *subject, d remediations.Decision) { p.putBack(t, t.Record, d) },
	slots: &slots{
		occupy: (*remediations.Fleet).OccupyLocation, vacate: (*remediations.Fleet).VacateLocation, free: (*remediations.Ledger).ReleaseLocation,
	},
	ofWhat:   func(e *remediations.Entry) string { return " of the leader of location " + e.Location },
	verified: (*passing).tellSuccessor,
}

// move lets the move go out.
func (p *passing) move(t *subject, r *remediations.Record) string {
	intent, move := *r.Intent, r.Moves[len(r.Moves)-1]
	p.send(calling{
		of: t.of, step: r.Step.Name, attempt: intent.ID,
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
	}, &t.m.repairMemory)
	return intent.ID
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
