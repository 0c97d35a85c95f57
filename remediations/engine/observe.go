package engine

import "drydock.dev/drydock/remediations"

// spoken reports whether a repair that mode observe holds has been counted against the limits for
// as long as the real step would take. After that time, it no longer counts there. was is the
// record before the decision.
func (p *pass) spoken(policy *remediations.Policy, was *remediations.Record) bool {
	until := p.Config.WouldUntil(policy, was)
	return !until.IsZero() && !p.now.Before(until)
}
