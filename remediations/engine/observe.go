package engine

import "drydock.dev/drydock/remediations"

// spoken says that the step which the mode alone holds back has had its time: it takes no place any more among those that would be
// under way. was is the record before the decision.
func (p *pass) spoken(policy *remediations.Policy, was *remediations.Record) bool {
	until := p.Config.WouldUntil(policy, was)
	return !until.IsZero() && !p.now.Before(until)
}
