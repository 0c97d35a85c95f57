package engine

import "drydock.dev/drydock/remediations"

// spoken reports whether a repair that observe mode holds no longer counts against the limits: it
// counts for as long as a real step may take.
func (p *pass) spoken(policy *remediations.Policy, was *remediations.Record) bool {
	until := p.Config.WouldUntil(policy, was)
	return !until.IsZero() && !p.now.Before(until)
}
