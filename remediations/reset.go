package remediations

import (
	"fmt"
	"slices"
)

// resetLeader forgets the exhausted repair of the leader that the node was.
func (s *State) resetLeader() Decision {
	leader, allow := s.Journal.Leader, s.stoppedHere()
	if s.Ledger != nil && !slices.Contains(allow, leader.Policy) {
		allow = append(allow, leader.Policy)
	}
	return Decision{
		Verb: Rest, Prune: append([]string{LeaderKey}, s.Journal.exhaustedSidecars()...), Allow: allow,
		Message: fmt.Sprintf("the exhausted repair %s of the leader of location %s was forgotten", leader.ID, leader.Location),
	}
}

// stoppedHere are the policies of the node's alerts, and of its repair, that are stopped.
func (s *State) stoppedHere() []string {
	if s.Ledger == nil {
		return nil
	}
	var out []string
	stopped := func(policy string) {
		if (s.Ledger.Failing(policy) || s.Ledger.Status.Stopped[policy] != "") && !slices.Contains(out, policy) {
			out = append(out, policy)
		}
	}
	if r := s.Journal.Record; r != nil {
		stopped(r.Policy)
	}
	for _, a := range s.Journal.Alerts {
		stopped(a.Policy)
	}
	return out
}
