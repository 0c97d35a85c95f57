package kilo

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/providers/kilo/election"
	kind "drydock.dev/drydock/remediations/targets/location"
	scenes "drydock.dev/drydock/remediations/testing/scene"
)

const (
	// firstMove is a repair of the location eu before its first move, by a plan that has one
	// attempt.
	firstMove = `
policy: {plan: ["promote-leader 1"]}
`
	// provenNow is a repair whose move was made and whose alert is gone: the proof lacks only a
	// look that shows it.
	provenNow = `
leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: 8b2d1f0c3a4e5d67}, location: eu, phase: Verifying, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-5m>", since: "<now-118s>", deadline: "<now+62s>",
  done: ["promote-leader:1"], moves: [{location: eu, from: n1, to: n2, before: {n1: "", n2: null}}],
  intent: {id: r1-0-1, at: "<now-2m>", uid: uid-n1, successor: n2, outcome: accepted},
  undo: [{kind: leader, key: n2, at: "<now-2m>"}]}
word: {replicas: [{alert: absent}, {alert: absent}]}
wellFor: 65s
policy: {plan: ["promote-leader 1"]}
`
)

// TestALocationOfTwo: whether the member may lead instead, and what is proven after the move. n1
// leads first and n2 is the member; after the move the roles are exchanged.
func TestALocationOfTwo(t *testing.T) {
	for name, c := range map[string]struct {
		pairs  bool
		record string
		// moved: n2 leads.
		moved bool
		local map[string]string
		cross map[string]string
		verb  lifecycle.Verb
		// reason of a hold, and its text.
		reason remediations.Reason
		says   string
	}{
		"without the key nothing is moved, and the hold names it": {
			record: firstMove, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderHeld, says: "set providers.kilo.pairs: true to allow the move",
		},
		"with the key the member leads": {pairs: true, record: firstMove, verb: lifecycle.VerbIssue, says: "move the mesh leadership of location eu from n1 to n2"},
		"the member does not reach its leader": {
			pairs: true, record: firstMove, local: map[string]string{"n2>n1": "1110"},
			verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderHeld, says: "it does not reach the leader n1",
		},
		"the leader does not reach its member": {
			pairs: true, record: firstMove, local: map[string]string{"n1>n2": "1110"},
			verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderHeld, says: "the path between the two nodes is faulty",
		},
		"no word about the member": {
			pairs: true, record: firstMove, cross: map[string]string{"west-0@west>n1": "1111"},
			verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderUnknown, says: "no data is not a fault",
		},
		"after the move the old leader is reached":  {pairs: true, record: provenNow, moved: true, cross: map[string]string{"west-0@west>n1": "0011", "west-0@west>n2": "1111"}, verb: lifecycle.VerbEnd, says: "n2 leads location eu, which answers, and the alert is gone"},
		"after the move the old leader is not":      {pairs: true, record: provenNow, moved: true, cross: map[string]string{"west-0@west>n1": "1100", "west-0@west>n2": "1111"}, verb: lifecycle.VerbWait, says: "other locations do not reach 1 of 1 members: n1 from west"},
		"and the time is up, so it is put back":     {pairs: true, record: movedOnceOfOne, moved: true, cross: map[string]string{"west-0@west>n1": "1100", "west-0@west>n2": "1111"}, verb: lifecycle.VerbIssue, says: "put the mesh leadership of location eu back"},
		"the same where it is not probed by itself": {pairs: true, record: movedOnceOfOne, moved: true, local: map[string]string{"n1>n2": "", "n2>n1": ""}, cross: map[string]string{"west-0@west>n1": "1100", "west-0@west>n2": "1111"}, verb: lifecycle.VerbIssue, says: "put the mesh leadership of location eu back"},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := onNode("n1", "eu"), onNode("n2", "eu")
			leads := first
			if c.moved {
				leads = second
				first.Annotations[remediations.LocationKey] = "{}"
			}
			leads.Annotations[election.LeaderKey], leads.Annotations[election.WireGuardIPKey] = leaderValue, "10.4.0.1/16"
			s := newScene(t, func(o *Options) { o.Pairs = c.pairs }, []*corev1.Node{first, second, onNode("west-0", "west")}...)
			s.everybodyReaches([]string{"n1", "n2"})
			for p, digits := range c.local {
				if s.local[p] = digits; digits == "" {
					delete(s.local, p)
				}
			}
			s.fromWest("1111", "n1")
			s.fromWest("1000", "n2")
			if c.cross != nil {
				s.cross = c.cross
			}
			saw := s.Look(t.Context(), "eu")
			saw.At = scenes.Ago("1s", "")
			state := scenes.ReadLocation(t, c.record).LocationState(t)
			state.Seen = &saw
			d := kind.Decide(state, scenes.Noon)
			require.Equal(t, c.verb, d.Verb, "%s; %+v", d.Message, saw)
			require.Equal(t, c.reason, d.Reason, d.Message)
			require.Contains(t, d.Message, c.says)
		})
	}
}
