package engine

import (
	"context"
	"errors"

	"drydock.dev/drydock/remediations"
)

// reserves reports whether the node is taken for Drydock before the step.
func (e *Engine) reserves(step string) bool {
	return len(e.Reservers) > 0 && e.Config.Reserves && e.Config.Remediation(step).Disruptive
}

// reserved returns a trouble if another system has taken the node, or if that is unknown. The
// result is empty if the node is free.
func (e *Engine) reserved(ctx context.Context, m Machine, by, step string) (s remediations.Survey) {
	if !e.reserves(step) {
		return s
	}
	for _, r := range e.Reservers {
		if err := r.Free(ctx, m, by); err != nil {
			s = remediations.Survey{Trouble: err.Error(), Reason: remediations.ReasonProviderAbsent, Fleetwide: true, Again: remediations.AskPassing}
			var known interface{ Survey() remediations.Survey }
			switch {
			case errors.Is(err, ErrTaken):
				s.Reason, s.Fleetwide = remediations.ReasonNodeUnderRepair, false
			case errors.As(err, &known):
				of := known.Survey()
				if s.Fleetwide, s.Again = of.Fleetwide, of.Again; of.Unreached {
					s.Reason = remediations.ReasonProviderUnreachable
				}
			}
			return s
		}
	}
	return s
}

// reserve takes the node right before the step, and withholds the step if that fails.
func (e *Engine) reserve(ctx context.Context, m Machine, by, step string) error {
	if !e.reserves(step) {
		return nil
	}
	for _, r := range e.Reservers {
		switch err := r.Take(ctx, m, by); {
		case errors.Is(err, ErrTaken):
			return remediations.Withhold(remediations.ReasonNodeUnderRepair, "%w", err)
		case err != nil:
			return remediations.Withhold(remediations.ReasonBlind, "%w", err)
		}
	}
	return nil
}
