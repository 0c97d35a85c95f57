package remediations

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// resetLocation forgets the exhausted repair of the leader that the node was.
func (s *State) resetLocation() Decision {
	leader, allow := s.Journal.location(), s.stoppedHere()
	if s.Ledger != nil && !slices.Contains(allow, leader.Policy) {
		allow = append(allow, leader.Policy)
	}
	return Decision{
		Verb: Rest, Prune: append([]string{LocationKey}, s.Journal.exhaustedBeside()...), Allow: allow,
		Message: fmt.Sprintf("the exhausted repair %s of the leader of location %s was forgotten", leader.ID, leader.Location),
	}
}

// stoppedHere are the policies of the node's alerts, and of its repair, that are stopped. Where those are over, they are the
// policies that would take the node: a person must be able to let a policy go on after its last alert.
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
	if len(out) > 0 {
		return out
	}
	for _, all := range []iter.Seq[string]{maps.Keys(s.Ledger.Status.Stopped), maps.Keys(s.Ledger.Status.Exhausted)} {
		for _, policy := range slices.Sorted(all) {
			if p := s.Config.PolicyOf(policy, s.Node); p == nil || p.takes(s.Node) {
				stopped(policy)
			}
		}
	}
	return out
}

// exhaustedBeside are the keys of the exhausted repairs of the node's targets that a node may have many of.
func (j Journal) exhaustedBeside() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(j.Records)) {
		if j.Records[key].Phase == Exhausted && key != LocationKey {
			out = append(out, key)
		}
	}
	return out
}
