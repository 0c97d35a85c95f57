package node

import (
	"fmt"
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// otherAlert continues the repair for another alert, if its own alert has ended and the node is not
// well. For example, a machine may not come back from its reboot: the alert about its CNI ends, and
// the alert about the node begins.
//
// An alert of the same policy continues the plan: both may be about one fault, for example if their
// labels name a pod that has moved. An alert of another policy ends the repair, but only if that
// policy would act now, because the attempts of this plan are then lost.
func (s *state) otherAlert(p *remediations.Policy, now time.Time) (d lifecycle.Decision, ok bool) {
	r := s.Record
	if r.Cause.Alert == "" {
		return d, false
	}
	for _, a := range s.Causes() {
		if a.Fingerprint == r.Cause.Alert || s.Verdict(remediations.Cause{Alert: a.Fingerprint}).Reason != "" {
			continue
		}
		if a.Policy == p.Name {
			next := r.Clone()
			next.Cause.Alert = a.Fingerprint
			return of(s.State, next).Proceed(now), true
		}
		q := s.Config.Policy(a.Policy)
		if r.Phase != remediations.PhasePending || q.Mode != remediations.ModeEnforce {
			continue // a repair in flight holds all other repairs of the node
		}
		switch d := of(s.State, nil).consider(q, a, "", now); d.Verb { //nolint:exhaustive // other decisions do not end the repair
		case lifecycle.VerbLook:
			return d, true
		case lifecycle.VerbIssue:
			return s.End(remediations.OutcomeSuperseded, fmt.Sprintf("its alert has ended and the node is not well: alert %s is active, and policy %s repairs the node for it", a.Name, q.Name), now), true
		}
	}
	return d, false
}
