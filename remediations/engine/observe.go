package engine

import "drydock.dev/drydock/remediations"

// spoken reports whether a repair that mode observe holds no longer counts against the limits. The
// repair counts for as long as a real step may take. was is the record before the decision.
func (p *pass) spoken(policy *remediations.Policy, was *remediations.Record) bool {
	until := p.Config.WouldUntil(policy, was)
	return !until.IsZero() && !p.now.Before(until)
}
