package kilo

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/providers/kilo/election"
	kind "drydock.dev/drydock/remediations/targets/location"
	scenes "drydock.dev/drydock/remediations/testing/scene"
)

// moved are the records of a repair whose last move was made and did not help by its deadline.
const (
	movedOnce = `
leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: 8b2d1f0c3a4e5d67}, location: eu, phase: Verifying, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-5m>", since: "<now-118s>", deadline: "<now-1s>",
  done: ["promote-leader:1"], moves: [{location: eu, from: n1, to: n2, before: {n1: "", n2: null}}],
  intent: {id: r1-0-1, at: "<now-2m>", uid: uid-n1, successor: n2, outcome: accepted},
  undo: [{kind: leader, key: n2, at: "<now-2m>"}]}
`
	movedOnceOfOne = movedOnce + `
policy: {plan: ["promote-leader 1"]}
`
)

// TestAHoldAfterAMoveIsHeldAndPutsNothingBackWithoutData: the decision uses the result of a real
// look.
func TestAHoldAfterAMoveIsHeldAndPutsNothingBackWithoutData(t *testing.T) {
	joined := onNode("n9", "")
	malformed := with(election.EndpointKey, "nonsense")
	gone := with(election.LastSeenKey, "1000")
	for name, c := range map[string]struct {
		record string
		more   []*corev1.Node
		third  func(*corev1.Node)
		first  func(*corev1.Node)
		silent bool
		verb   lifecycle.Verb
		reason remediations.Reason
		says   []string
	}{
		"control: the next is tried":             {record: movedOnce, verb: lifecycle.VerbIssue, says: []string{"move the mesh leadership of location eu from n2 to n3"}},
		"a node in no location":                  {record: movedOnce, more: []*corev1.Node{joined}, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderHeld, says: []string{"node n9 is in no location", election.DefaultTopologyLabel}},
		"an annotation of the only one left":     {record: movedOnce, third: malformed, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderHeld, says: []string{"node n3", election.EndpointKey}},
		"a node in no location, and no data":     {record: movedOnce, more: []*corev1.Node{joined}, silent: true, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderHeld, says: []string{"node n9 is in no location"}},
		"the same where the plan has run out":    {record: movedOnceOfOne, more: []*corev1.Node{joined}, silent: true, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderUnknown, says: []string{"no data is not a fault"}},
		"it has run out, with data":              {record: movedOnceOfOne, more: []*corev1.Node{joined}, verb: lifecycle.VerbIssue, says: []string{"put the mesh leadership of location eu back"}},
		"nobody but the leader is left":          {record: movedOnce, first: gone, third: gone, verb: lifecycle.VerbIssue, says: []string{"put the mesh leadership of location eu back"}},
		"nobody but the leader, and no data":     {record: movedOnce, first: gone, third: gone, silent: true, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderUnknown, says: []string{"no data is not a fault"}},
		"no data alone, which is no hold either": {record: movedOnce, silent: true, verb: lifecycle.VerbHold, reason: remediations.ReasonLeaderUnknown, says: []string{"no data is not a fault"}},
	} {
		t.Run(name, func(t *testing.T) {
			first, third := onNode("n1", "eu", with(remediations.LocationKey, "{}")), onNode("n3", "eu")
			for n, change := range map[*corev1.Node]func(*corev1.Node){first: c.first, third: c.third} {
				if change != nil {
					change(n)
				}
			}
			second := onNode("n2", "eu", with(election.LeaderKey, leaderValue), with(election.WireGuardIPKey, "10.4.0.1/16"))
			s := newScene(t, nil, append([]*corev1.Node{first, second, third, onNode("west-0", "west")}, c.more...)...)
			s.everybodyReaches([]string{"n1", "n2", "n3"})
			s.fromWest("0000", "n1", "n2", "n3")
			if c.silent {
				s.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
			}
			saw := s.Look(t.Context(), "eu")
			saw.At = scenes.Ago("1s", "")
			state := scenes.ReadLocation(t, c.record).LocationState(t)
			state.Seen = &saw
			d := kind.Decide(state, scenes.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason, d.Message)
			for _, want := range c.says {
				require.Contains(t, d.Message, want)
			}
			if c.verb == lifecycle.VerbHold {
				require.Empty(t, d.PutBack)
			}
		})
	}
}
