package engine

import (
	"context"

	"drydock.dev/drydock/remediations"
)

// putBackStep is what putting leadership back is called among the steps that the metrics count.
const putBackStep = "put-back-leader"

// putBack has the moves of the record put back beside the loop, the newest first. Whoever leads does it again until it is
// done.
func (p *passing) putBack(t *subject, r *remediations.Record, d remediations.Decision) {
	if p.Locations == nil {
		return // at the record's deadline it is held, and then given up
	}
	id, node, moves := r.PutBackID(), t.of.node, d.PutBack
	t.m.call = &remediations.Call{IntentID: id}
	p.underway++
	p.Log.Info("putting mesh leadership back", "location", t.Name, "node", node, "repair", r.ID)
	within := min(p.CallTimeout, r.Deadline.Sub(p.Clock.Now()))
	go func() {
		ctx, cancel := context.WithTimeout(p.ctx, within)
		defer cancel()
		call := remediations.Call{IntentID: id, Outcome: remediations.CallAccepted}
		for _, move := range moves {
			if err := p.putBackOne(ctx, node, id, move); err != nil {
				call.Outcome, call.Why, call.Withheld = remediations.CallUnknown, err.Error(), remediations.WithheldFor(err, "")
				break
			}
		}
		p.calls <- called{of: t.of, call: call, step: putBackStep}
	}()
}

func (p *passing) putBackOne(ctx context.Context, node, id string, m remediations.Move) error {
	look, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	live, err := p.Fleet.Node(look, node)
	if err != nil {
		return remediations.Withhold(remediations.Blind, "looking at node %s once more: %w", node, err)
	}
	others, err := p.others(live, m, true)
	if err != nil {
		return err
	}
	if err := p.core.mayStillPutBack(live, others, id); err != nil {
		return err
	}
	return p.Locations.PutBack(ctx, m)
}
