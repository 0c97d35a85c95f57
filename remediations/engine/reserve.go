package engine

import (
	"context"
	"errors"

	"drydock.dev/drydock/remediations"
)

func (e *Engine) reserves(step string) bool {
	return len(e.Reservers) > 0 && e.Config.Reserves && e.Config.Remediation(step).Disruptive
}

// reserved returns a Trouble if another system has reserved the node, or if that is unknown.
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

// reserve runs right before the step. Its error stops the step.
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
