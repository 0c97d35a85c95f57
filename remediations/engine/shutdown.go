package engine

import (
	"context"
	"errors"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// recordOutcome is used while the engine stops.
func (e *Engine) recordOutcome(ctx context.Context, c called) error {
	n, err := e.Fleet.Node(ctx, c.of.node)
	if err != nil {
		return err
	}
	s := &lifecycle.State{Config: e.Config, Node: n, Journal: e.Config.Registry.ReadJournal(n), Call: &c.call}
	if change := e.outcomeOf(s, c); change != nil {
		_, err = e.write(ctx, n, *change)
	}
	return err
}

func (e *Engine) outcomeOf(s *lifecycle.State, c called) *NodeChange {
	k := kindOf(c.of.kind)
	for _, one := range e.Config.Subjects(k.of, s.Journal) {
		// The outcome is needed only for a call that must not be repeated. The next leader repeats
		// the other calls in any case.
		if r := one.Record; one.Name == c.of.name && r != nil && r.Phase == remediations.PhaseActing && r.Back == nil && e.Config.Remediation(r.Step.Name).Once {
			return change(s, one.Key, k.decide(e, &subject{State: s, Subject: one, of: c.of, m: &targetMemory{}}, e.Clock.Now()))
		}
	}
	return nil
}

// graceful is how long a stopping engine waits for running calls, to write their outcomes.
const graceful = 5 * time.Second

// finish may run while another replica is already the leader. That does no harm, because each write
// is checked against the Node's resourceVersion.
func (e *Engine) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	for e.underway > 0 {
		select {
		case c := <-e.calls:
			e.answered(c)
			for errors.Is(e.recordOutcome(ctx, c), ErrConflict) && ctx.Err() == nil {
				e.Log.Info("the Node was changed by another writer in the meantime; the call's outcome is written again", "node", c.of.node)
			}
		case <-ctx.Done():
			return
		}
	}
}
