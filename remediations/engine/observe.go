package engine

import "drydock.dev/drydock/remediations"

// spoken reports whether a step that only the observe mode holds back has occupied its place for as
// long as the real step would have. After that, it no longer counts among the repairs that would be
// under way. was is the record before the decision.
func (p *pass) spoken(policy *remediations.Policy, was *remediations.Record) bool {
	until := p.Config.WouldUntil(policy, was)
	return !until.IsZero() && !p.now.Before(until)
}
