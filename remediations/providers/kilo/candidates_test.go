package kilo

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// TestWhoIsUnfitIsRefusedAndSaysWhy: because of the node's state in Kubernetes, Drydock and Kilo,
// or because of people.
func TestWhoIsUnfitIsRefusedAndSaysWhy(t *testing.T) {
	alert := func(status, about string) func(*corev1.Node) {
		a := remediations.Alert{V: 1, Name: "MeshForwardingFault", Policy: "p", Status: status, StartsAt: noon, ReceivedAt: noon, Labels: map[string]string{"instance": about}, Fingerprint: "9f2c0e5b6d1a4c33"}
		return with(a.Key(), a.Encode())
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   string // empty: it is fit
	}{
		"well": {func(*corev1.Node) {}, ""},
		"not Ready": {func(n *corev1.Node) {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		}, "not Ready"},
		"nobody says whether it is Ready": {func(n *corev1.Node) { n.Status.Conditions = nil }, "not Ready"},
		"cordoned":                        {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "cordoned"},
		"the autoscaler takes it": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		}, "ToBeDeletedByClusterAutoscaler"},
		"tainted for other reasons": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, ""},
		"a control-plane node":         {label("node-role.kubernetes.io/control-plane", ""), "control-plane"},
		"excluded":                     {label(remediations.ExcludeLabel, "yes"), remediations.ExcludeLabel},
		"not excluded":                 {label(remediations.ExcludeLabel, "false"), ""},
		"paused":                       {with(remediations.PauseKey, "true for now"), remediations.PauseKey},
		"paused until later":           {with(remediations.PauseKey, noon.Add(time.Hour).Format(time.RFC3339)), remediations.PauseKey},
		"paused until before":          {with(remediations.PauseKey, noon.Add(-time.Hour).Format(time.RFC3339)), ""},
		"paused, nobody can say":       {with(remediations.PauseKey, "perhaps"), remediations.PauseKey},
		"break-glass":                  {with(remediations.BreakGlassKey, "me"), remediations.BreakGlassKey},
		"under repair":                 {label(remediations.PhaseLabel, "Verifying"), "it is under repair itself, in phase Verifying"},
		"one that ran out of attempts": {label(remediations.PhaseLabel, "Exhausted"), "it is under repair itself, in phase Exhausted"},
		"one that waits":               {label(remediations.PhaseLabel, "Pending"), "it is under repair itself, in phase Pending"},
		"a node's repair on record": {
			with(remediations.NodeRepairKey, "{}"), remediations.NodeRepairKey,
		},
		"a leader's repair on record": {with(remediations.LocationKey, "?"), remediations.LocationKey},
		"an alert about it":           {alert("firing", "east-1"), "the alert MeshForwardingFault is firing about it"},
		"an alert about it, over":     {alert("resolved", "east-1"), ""},
		"an alert about another":      {alert("firing", "east-2"), ""},
		"no key":                      {with(election.PublicKeyKey, ""), "it lacks a public key"},
		"no pod CIDR":                 {func(n *corev1.Node) { n.Spec.PodCIDR = "" }, "it lacks a pod CIDR"},
		"not seen for long":           {with(election.LastSeenKey, fmt.Sprint(noon.Unix()-60)), "last wrote 1m ago"},
		"seen just in time":           {with(election.LastSeenKey, fmt.Sprint(noon.Unix()-59)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := dark(t, nil, east(func(name string, n *corev1.Node) {
				if name == "east-1" {
					c.change(n)
				}
			})...)
			saw := s.Look(t.Context(), "east")
			require.Empty(t, saw.Held+saw.Unknown)
			if c.want == "" {
				require.Equal(t, []string{"east-1", "east-2", "east-3"}, successors(saw))
				return
			}
			require.Equal(t, []string{"east-2", "east-3"}, successors(saw))
			require.Contains(t, saw.Refused["east-1"], c.want)

			// Move also refuses a node that was fit when it was observed, and is unfit now.
			was := "true"
			outcome, err := s.Move(t.Context(), remediations.Move{Location: "east", From: "east-0", To: "east-1", Before: map[string]*string{"east-0": &was, "east-1": nil}}, func() error {
				require.Fail(t, "nobody needs to be asked")
				return nil
			})
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, "nothing was changed")
		})
	}
}

func TestAControlPlaneNodeLeadsOnlyWhereThatIsAllowed(t *testing.T) {
	control := func(name string, n *corev1.Node) {
		if name != "east-3" {
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
		}
	}
	s := dark(t, nil, east(control)...)
	require.Equal(t, []string{"east-3"}, successors(s.Look(t.Context(), "east")), "the leader may be one, the successor not")
	s = dark(t, func(o *Options) { o.AllowControlPlane = true }, east(control)...)
	require.Equal(t, []string{"east-1", "east-2", "east-3"}, successors(s.Look(t.Context(), "east")))
}

// TestASuccessorIsReachedAsTheLeaderIs: the leader annotation makes Kilo prefer a private endpoint
// to every public one, and Kilo does not check whether other nodes reach it.
func TestASuccessorIsReachedAsTheLeaderIs(t *testing.T) {
	const private, public, host, carrier = "10.0.0.9:51820", "203.0.113.9:51820", "vpn.example.com:51820", "100.64.12.7:51820"
	for name, c := range map[string]struct {
		leader, successor string
		alive             [2]string
		want              string
	}{
		"both private":                       {private, private, [2]string{}, ""},
		"both public":                        {public, public, [2]string{}, ""},
		"a public one for a private":         {private, public, [2]string{}, ""},
		"a private one for a public":         {public, private, [2]string{}, "not public but the leader's is"},
		"a carrier's for a public":           {public, carrier, [2]string{}, "100.64.0.0/10, which the internet does not route"},
		"both a carrier's":                   {carrier, carrier, [2]string{}, ""},
		"a public one for a carrier's":       {carrier, public, [2]string{}, ""},
		"a private one for a carrier's":      {carrier, private, [2]string{}, "not public but the leader's is"},
		"a link-local one for a public":      {public, "[fe80::9]:51820", [2]string{}, "which the internet does not route"},
		"a unique local one for a public":    {public, "[fd12::9]:51820", [2]string{}, "which the internet does not route"},
		"a name for a public":                {public, host, [2]string{}, "not public but the leader's is"},
		"a public one for a name":            {host, public, [2]string{}, ""},
		"a private one for a name":           {host, private, [2]string{}, "one is a host name"},
		"both names":                         {host, host, [2]string{}, ""},
		"behind a NAT as the leader is":      {private, private, [2]string{"10", "25"}, ""},
		"behind a NAT that nobody keeps":     {private, private, [2]string{"10", ""}, election.KeepaliveKey},
		"not behind the NAT that leader is":  {private, private, [2]string{"", "10"}, election.KeepaliveKey},
		"a public one needs nothing kept up": {private, public, [2]string{"10", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := dark(t, nil, east(func(name string, n *corev1.Node) {
				switch name {
				case "east-0":
					n.Annotations[election.EndpointKey], n.Annotations[election.KeepaliveKey] = c.leader, c.alive[0]
				case "east-1":
					n.Annotations[election.EndpointKey], n.Annotations[election.KeepaliveKey] = c.successor, c.alive[1]
				}
			})...)
			saw := s.Look(t.Context(), "east")
			require.Equal(t, "east-0", saw.Leader)
			if c.want == "" {
				require.Contains(t, successors(saw), "east-1", saw.Refused)
				return
			}
			require.NotContains(t, successors(saw), "east-1")
			require.Contains(t, saw.Refused["east-1"], c.want)

			// Move also refuses a node whose endpoint was suitable when it was observed, and is not
			// now.
			was := "true"
			outcome, err := s.Move(t.Context(), remediations.Move{Location: "east", From: "east-0", To: "east-1", Before: map[string]*string{"east-0": &was, "east-1": nil}}, func() error { return nil })
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestTheBestCandidateIsPublicThenTiedToMostSiblingsThenFirstByName(t *testing.T) {
	s := dark(t, nil, east(func(name string, n *corev1.Node) {
		if name == "east-3" {
			n.Annotations[election.EndpointKey] = "203.0.113.9:51820"
		}
	})...)
	delete(s.local, "east-1>east-3")
	require.Equal(t, []string{"east-3", "east-2", "east-1"}, successors(s.Look(t.Context(), "east")))
	s.local["east-1>east-3"] = "1"
	require.Equal(t, []string{"east-3", "east-1", "east-2"}, successors(s.Look(t.Context(), "east")))
}

// TestEveryKeyThatWouldOutrankTheSuccessorIsOnRecord: the move's Before has all of them.
func TestEveryKeyThatWouldOutrankTheSuccessorIsOnRecord(t *testing.T) {
	s := dark(t, nil, east(func(name string, n *corev1.Node) {
		if name == "east-1" {
			n.Annotations[election.LeaderKey] = "reserve"
		}
	})...)
	saw := s.Look(t.Context(), "east")
	was, reserve := "true", "reserve"
	require.Equal(t, map[string]*string{"east-0": &was}, saw.Candidates[0].Before, "east-1 has its key already")
	require.Equal(t, map[string]*string{"east-0": &was, "east-1": &reserve, "east-2": nil}, saw.Candidates[1].Before)
}

// TestOfThreeTheLastOneFollowsASuccessorThatWasBadAsWell: east-0 led first and is under repair, and
// east-1 leads and relays nothing. It is unknown whether these two are healthy. That east-2 reached
// east-1 proves that east-2 is healthy.
func TestOfThreeTheLastOneFollowsASuccessorThatWasBadAsWell(t *testing.T) {
	was := "true"
	for name, c := range map[string]struct {
		phase remediations.Phase
		said  map[string]string
		want  []string
		why   string
	}{
		"waiting for proof":      {remediations.PhaseVerifying, nil, []string{"east-2"}, ""},
		"between two attempts":   {remediations.PhasePending, nil, []string{"east-2"}, ""},
		"it reaches nobody":      {remediations.PhasePending, map[string]string{"east-2>east-1": "0"}, nil, "does not reach the leader east-1"},
		"it was not heard":       {remediations.PhasePending, map[string]string{"east-2>east-1": ""}, nil, "reached no other member than the leader"},
		"nobody is under repair": {"", nil, nil, "does not reach its siblings east-0"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := east(func(name string, n *corev1.Node) {
				switch name {
				case "east-0":
					delete(n.Annotations, election.LeaderKey)
					delete(n.Annotations, election.WireGuardIPKey)
					if c.phase != "" {
						n.Annotations[remediations.LocationKey] = recordOf(c.phase, remediations.Move{Location: "east", From: "east-0", To: "east-1", Before: map[string]*string{"east-0": &was, "east-1": nil}})
					}
				case "east-1":
					n.Annotations[election.LeaderKey], n.Annotations[election.WireGuardIPKey] = leaderValue, "10.4.0.1/16"
				}
			})
			s := dark(t, nil, nodes[:3]...)
			s.everybodyReaches(easterners[:3], "east-0")
			maps.Copy(s.local, c.said)
			saw := s.Look(t.Context(), "east")
			require.Equal(t, "east-1", saw.Leader)
			require.False(t, saw.Reached)
			require.Equal(t, c.want, successors(saw), saw.Refused)
			if c.phase != "" {
				require.Contains(t, saw.Refused["east-0"], "a repair record of its own")
			}
			require.Contains(t, saw.Refused["east-2"], c.why)
		})
	}
}

// TestWhoWasTriedBeforeSaysNothingAgainstWhoIsTriedNext: of four nodes, east-1 led second. Its
// probe results do not count, although no annotation on it shows that it led.
func TestWhoWasTriedBeforeSaysNothingAgainstWhoIsTriedNext(t *testing.T) {
	was, ours := "true", leaderValue
	nodes := east(func(name string, n *corev1.Node) {
		switch name {
		case "east-0":
			delete(n.Annotations, election.LeaderKey)
			n.Annotations[remediations.LocationKey] = recordOf(remediations.PhaseVerifying,
				remediations.Move{Location: "east", From: "east-0", To: "east-1", Before: map[string]*string{"east-0": &was, "east-1": nil}},
				remediations.Move{Location: "east", From: "east-1", To: "east-2", Before: map[string]*string{"east-1": &ours, "east-2": nil}})
		case "east-2":
			n.Annotations[election.LeaderKey] = leaderValue
		}
	})
	s := dark(t, nil, nodes...)
	s.everybodyReaches(easterners, "east-0", "east-1")
	saw := s.Look(t.Context(), "east")
	require.Equal(t, "east-2", saw.Leader)
	require.Equal(t, []string{"east-3"}, successors(saw), saw.Refused)
	require.Contains(t, saw.Refused["east-1"], "does not reach")
}

// recordOf is the record of a leader's repair after these moves.
func recordOf(phase remediations.Phase, moves ...remediations.Move) string {
	r := remediations.Record{
		V: 1, ID: "n7q4k2", Policy: "mesh-leader-degraded", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Location: "east", Phase: phase,
		Step: remediations.StepRef{Name: "promote-leader", Attempt: len(moves)}, Moves: moves, Since: noon, Deadline: noon.Add(time.Minute),
		Intent: &remediations.Intent{ID: "n7q4k2-0-1", At: noon, Successor: moves[len(moves)-1].To},
	}
	return r.Encode()
}
