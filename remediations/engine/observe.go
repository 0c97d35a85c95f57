package engine

import "drydock.dev/drydock/remediations"

// spoken reports whether the step that only the mode holds back has had its time. It then no longer
// takes a place among the repairs that would be under way. was is the record before the decision.
func (p *pass) spoken(policy *remediations.Policy, was *remediations.Record) bool {
	until := p.Config.WouldUntil(policy, was)
	return !until.IsZero() && !p.now.Before(until)
}
