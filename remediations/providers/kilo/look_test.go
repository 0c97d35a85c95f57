package kilo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/lab/atonce"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
	kind "drydock.dev/drydock/remediations/targets/location"
)

func successors(s kind.Observation) []string {
	var out []string
	for _, m := range s.Candidates {
		out = append(out, m.To)
	}
	return out
}

// dark is the fault: the leader forwards nothing, and its members reach each other.
func dark(t *testing.T, change func(*Options), nodes ...*corev1.Node) *scene {
	s := newScene(t, change, append(nodes, onNode("west-0", "west"))...)
	s.everybodyReaches(easterners, "east-0")
	s.fromWest("0000", easterners[1:]...)
	s.fromWest("1111", "east-0")
	return s
}

// TestManyLocationsCostOneReadOfTheCache: alerts can name any number of locations, and each poll
// needs all of them.
func TestManyLocationsCostOneReadOfTheCache(t *testing.T) {
	all := append(east(), onNode("west-0", "west"))
	reads := 0
	s := newScene(t, func(o *Options) {
		o.Nodes = func(context.Context) ([]*corev1.Node, error) { reads++; return all, nil }
	}, all...)
	leads := s.LeadsAll()
	for i := range 20_000 {
		require.Empty(t, leads(fmt.Sprintf("nowhere-%d", i)))
	}
	require.Equal(t, 1, reads)
	for _, location := range []string{"east", "west", "north", "node:east-2", ""} {
		require.Equal(t, s.Leads(location), leads(location), location)
	}
	require.Equal(t, "east-0", leads("east"), "the control")
}

func TestALookSeesTheLeaderAndWhoCouldLeadInstead(t *testing.T) {
	s := dark(t, nil, east()...)
	saw := s.Look(t.Context(), "east")
	require.Equal(t, noon, saw.At)
	require.Equal(t, "east-0", saw.Leader)
	require.Empty(t, saw.Held)
	require.Empty(t, saw.Unknown)
	require.Equal(t, []string{"east-1", "east-2", "east-3"}, successors(saw))
	was := "true"
	require.Equal(t, remediations.Move{Location: "east", From: "east-0", To: "east-1", Before: map[string]*string{"east-0": &was, "east-1": nil}}, saw.Candidates[0])
	require.Empty(t, saw.Refused)
	require.True(t, saw.Settled)
	require.False(t, saw.Reached)
	require.Contains(t, saw.ReachedWhy, "other locations do not reach 3 of 3 members: east-1 from west")
	for _, a := range s.client.Actions() {
		require.Contains(t, []string{"list", "create"}, a.GetVerb(), "a look changes nothing")
	}
	require.Equal(t, "east-0", s.Leads("east"))
	require.Equal(t, "west-0", s.Leads("west"))
	require.Empty(t, s.Leads("north"))
}

func TestAfterTheMoveTheOldLeaderIsOneBadMemberAndProvesNothing(t *testing.T) {
	s := dark(t, nil, east(func(name string, n *corev1.Node) {
		if name == "east-0" {
			delete(n.Annotations, election.LeaderKey)
			delete(n.Annotations, election.WireGuardIPKey)
		}
		if name == "east-2" {
			n.Annotations[election.LeaderKey], n.Annotations[election.WireGuardIPKey] = leaderValue, "10.4.0.1/16"
		}
	})...)
	s.fromWest("0011", "east-1", "east-3")
	s.fromWest("1100", "east-0")
	saw := s.Look(t.Context(), "east")
	require.Equal(t, "east-2", saw.Leader)
	require.True(t, saw.Settled)
	require.True(t, saw.Reached, saw.ReachedWhy)
	require.Equal(t, []string{"east-1", "east-3"}, successors(saw))
	require.Contains(t, saw.Refused["east-0"], "it may be faulty itself: in the last 7m, east-1, east-3 did not reach it")
}

func TestSettledIsOneAddressAndTheLeadersOwn(t *testing.T) {
	for name, c := range map[string]struct {
		addresses []string
		want      bool
	}{
		"the leader's":           {[]string{"east-0"}, true},
		"nobody's":               {nil, false},
		"the old one still too":  {[]string{"east-0", "east-1"}, false},
		"only the old one still": {[]string{"east-3"}, false},
	} {
		s := dark(t, nil, east(func(name string, n *corev1.Node) {
			delete(n.Annotations, election.WireGuardIPKey)
			if slices.Contains(c.addresses, name) {
				n.Annotations[election.WireGuardIPKey] = "10.4.0.1/16"
			}
		})...)
		require.Equal(t, c.want, s.Look(t.Context(), "east").Settled, name)
	}
}

// TestBadInputIsAHoldThatNamesIt, and no node is proposed. The leader is observed all the same,
// because it carries the hold.
func TestBadInputIsAHoldThatNamesIt(t *testing.T) {
	on := func(which string, change func(*corev1.Node)) func(string, *corev1.Node) {
		return func(name string, n *corev1.Node) {
			if name == which {
				change(n)
			}
		}
	}
	all := func(change func(*corev1.Node)) func(string, *corev1.Node) {
		return func(_ string, n *corev1.Node) { change(n) }
	}
	for name, c := range map[string]struct {
		change func(string, *corev1.Node)
		more   []*corev1.Node
		want   []string
	}{
		"full granularity":               {all(with(election.GranularityKey, "full")), nil, []string{"different granularities", "east-0", `"full"`, "west-0", `"location"`}},
		"full granularity everywhere":    {all(with(election.GranularityKey, "full")), []*corev1.Node{onNode("west-0", "west", with(election.GranularityKey, "full"))}, []string{`node east-0 is "full"`, election.GranularityKey}},
		"a granularity that we know not": {all(with(election.GranularityKey, "cross")), []*corev1.Node{onNode("west-0", "west", with(election.GranularityKey, "cross"))}, []string{`node east-0 is "cross"`}},
		"different granularities":        {on("east-2", with(election.GranularityKey, "full")), nil, []string{"different granularities", "east-0", "east-2", "--mesh-granularity"}},
		"two topologies elsewhere":       {nil2, []*corev1.Node{onNode("west-0", "west", with(election.GranularityKey, "full"))}, []string{"different granularities", "west-0"}},
		"no granularity":                 {on("east-3", without(election.GranularityKey)), nil, []string{"east-3", "reports no granularity"}},
		"a node in no location":          {nil2, []*corev1.Node{onNode("lost", "")}, []string{"node lost is in no location", election.DefaultTopologyLabel, election.LocationKey}},
		"an empty location":              {nil2, []*corev1.Node{onNode("lost", "east", with(election.LocationKey, ""))}, []string{"node lost is in no location"}},
		"an endpoint":                    {on("east-1", with(election.EndpointKey, "nonsense")), nil, []string{election.EndpointKey, "node east-1", "is invalid"}},
		"a forced endpoint":              {on("east-1", with(election.ForceEndpointKey, "10.0.0.1")), nil, []string{election.ForceEndpointKey, "node east-1"}},
		"a key":                          {on("east-1", with(election.PublicKeyKey, "bm90MzI=")), nil, []string{election.PublicKeyKey, "node east-1"}},
		"an internal address":            {on("east-1", with(election.InternalIPKey, "10.0.0.1")), nil, []string{election.InternalIPKey, "node east-1"}},
		"a forced internal address":      {on("east-1", with(election.ForceInternalIPKey, "none")), nil, []string{election.ForceInternalIPKey, "node east-1"}},
		"a last-seen":                    {on("east-1", with(election.LastSeenKey, "yesterday")), nil, []string{election.LastSeenKey, "node east-1"}},
		"an address in the mesh":         {on("east-0", with(election.WireGuardIPKey, "?")), nil, []string{election.WireGuardIPKey, "node east-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			more := append(slices.Clone(c.more), onNode("west-0", "west"))
			if len(c.more) > 0 && c.more[0].Name == "west-0" {
				more = c.more
			}
			s := newScene(t, nil, append(east(c.change), more...)...)
			s.everybodyReaches(easterners, "east-0")
			s.fromWest("0000", easterners[1:]...)
			saw := s.Look(t.Context(), "east")
			for _, want := range c.want {
				require.Contains(t, saw.Held, want)
			}
			require.Equal(t, "east-0", saw.Leader)
			require.Empty(t, saw.Candidates)
			require.Empty(t, saw.Unknown)

			outcome, err := s.Move(t.Context(), remediations.Move{Location: "east", From: "east-0", To: "east-2"}, func() error { return nil })
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, c.want[0])
		})
	}
}

func nil2(string, *corev1.Node) {}

// TestWhatIsNotInTheMeshSaysNothingOfIt: a node that Kilo does not count, and an annotation in
// another location.
func TestWhatIsNotInTheMeshSaysNothingOfIt(t *testing.T) {
	gone := with(election.LastSeenKey, "1000")
	s := dark(t, nil, append(east(),
		onNode("west-1", "west", with(election.EndpointKey, "nonsense")),
		onNode("old", "south", gone, with(election.GranularityKey, "full")),
		onNode("strange", "", gone),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "virtual"}},
	)...)
	saw := s.Look(t.Context(), "east")
	require.Empty(t, saw.Held)
	require.Len(t, saw.Candidates, 3)
}

func TestALocationOfOneNodeIsHeldAndSaysWhoIsMissing(t *testing.T) {
	s := newScene(t, nil, onNode("east-0", "east"), onNode("east-1", "east", with(election.LastSeenKey, "1000")), onNode("east-2", "east", with(election.InternalIPKey, "")), onNode("west-0", "west"))
	s.everybodyReaches(easterners)
	saw := s.Look(t.Context(), "east")
	require.Equal(t, "east-0", saw.Leader)
	require.Contains(t, saw.Held, `Kilo counts only node east-0 in location "east"`)
	require.Contains(t, saw.Held, "east-1: its Kilo agent last wrote")
	require.Contains(t, saw.Held, "east-2: it has no internal address")

	saw = s.Look(t.Context(), "node:east-2")
	require.Equal(t, "east-2", saw.Leader)
	require.Contains(t, saw.Held, "no other node could lead instead")
	require.Equal(t, "east-2", s.Leads("node:east-2"))
}

func TestMissingDataIsUnknownAndProposesNoLeader(t *testing.T) {
	s := dark(t, nil, east()...)
	s.local, s.cross = nil, nil
	saw := s.Look(t.Context(), "east")
	require.Contains(t, saw.Unknown, `has no probe results about location "east" in the last 7m`)
	require.Contains(t, saw.Unknown, "check that drydock-agent runs")
	require.Equal(t, "east-0", saw.Leader)
	require.True(t, saw.Settled)
	require.False(t, saw.Reached)
	require.Empty(t, saw.Candidates)

	s = dark(t, nil, east()...)
	s.local = nil // the members' results never arrived
	saw = s.Look(t.Context(), "east")
	require.Contains(t, saw.Unknown, "east-1: its agent reached no other member than the leader")
	require.Empty(t, saw.Candidates)

	s = dark(t, nil, east()...)
	s.cross = nil // the target is known, and no other location has results about it
	saw = s.Look(t.Context(), "east")
	require.False(t, saw.Reached)
	require.Contains(t, saw.Unknown, "in the last 45s, no other location has probed a member", "so the alert alone moves nobody")
	require.Empty(t, saw.Candidates)

	saw = s.Look(t.Context(), "nowhere")
	require.Contains(t, saw.Unknown, `Kilo counts no node in location "nowhere"`)
	require.Empty(t, saw.Leader)

	asked := len(s.queries())
	s.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("out of order") })
	saw = s.Look(t.Context(), "east")
	require.Contains(t, saw.Unknown, "listing the Nodes: out of order")
	require.Empty(t, saw.Leader)
	require.Len(t, s.queries(), asked, "and nobody else is asked then")
	outcome, err := s.Move(t.Context(), remediations.Move{Location: "east", From: "east-0", To: "east-1"}, func() error { return nil })
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "out of order")
	require.ErrorContains(t, s.PutBack(t.Context(), remediations.Move{Location: "east", From: "east-0", To: "east-1"}), "out of order")
}

func TestANameThatDecidesTheLeaderIsReported(t *testing.T) {
	s := dark(t, nil, east(func(name string, n *corev1.Node) {
		if name == "east-2" {
			n.Annotations[election.LeaderKey], n.Annotations[election.EndpointKey] = "true", "vpn.example.com:51820"
		}
	})...)
	saw := s.Look(t.Context(), "east")
	require.Empty(t, saw.Leader)
	require.Contains(t, saw.Unknown, "is unknown: an endpoint is a host name")
	require.Contains(t, saw.Unknown, election.ForceEndpointKey)
	require.Empty(t, s.Leads("east"))
}

func TestAVeryLongNameOfALocationIsQueriedInFull(t *testing.T) {
	odd := "a\"}\\ or vector(1) #\n" + strings.Repeat("é", 100)
	s := newScene(t, nil, onNode("a", odd), onNode("b", odd), onNode("c", odd))
	s.Look(t.Context(), odd)
	require.Len(t, s.queries(), 2)
	for _, q := range s.queries() {
		require.Contains(t, q, `job=~"drydock-agent|.+[-/]drydock-agent"`)
		require.Contains(t, q, `dst_location="a\"}\\ or vector(1) #\n`+strings.Repeat("é", 100)+`"`)
	}
}

func TestAllNodesAreReadOneLookAtATime(t *testing.T) {
	s := dark(t, nil, east()...)
	var reads atonce.Count
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		reads.Enter()
		time.Sleep(5 * time.Millisecond)
		reads.Leave()
		writeMatrix(w, nil)
	}
	var looks sync.WaitGroup
	for range 5 {
		looks.Go(func() { s.Look(t.Context(), "east") })
	}
	looks.Wait()
	require.Equal(t, 1, reads.Most())
}

// TestNothingIsPutBackOutsideTheLocation: if a recorded move names any node of another location,
// nothing at all is written; with members alone the move is put back.
func TestNothingIsPutBackOutsideTheLocation(t *testing.T) {
	evil, forth := "evil", leaderValue
	for name, c := range map[string]struct {
		move remediations.Move
		want string // the value on west-0 or east-1 after that; empty: nothing was written
	}{
		"a key of another location":      {move: remediations.Move{Location: "east", From: "east-0", To: "east-2", Before: map[string]*string{"east-1": &evil, "west-0": &evil}}},
		"from another location":          {move: remediations.Move{Location: "east", From: "west-0", To: "east-2", Before: map[string]*string{"east-1": &evil}}},
		"to another location":            {move: remediations.Move{Location: "east", From: "east-0", To: "west-0", Before: map[string]*string{"east-1": &evil}}},
		"control: members alone":         {move: remediations.Move{Location: "east", From: "east-0", To: "east-2", Before: map[string]*string{"east-1": &forth}}, want: forth},
		"control: a member that is gone": {move: remediations.Move{Location: "east", From: "east-9", To: "east-2", Before: map[string]*string{"east-1": &forth}}, want: forth},
	} {
		t.Run(name, func(t *testing.T) {
			s := dark(t, nil, east()...)
			err := s.PutBack(t.Context(), c.move)
			key := func(node string) string {
				n, err := s.client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
				require.NoError(t, err)
				return n.Annotations[election.LeaderKey]
			}
			require.Equal(t, c.want, key("east-1"))
			require.Empty(t, key("west-0"))
			if c.want == "" {
				require.ErrorContains(t, err, "node west-0 is not in the location")
				return
			}
			require.NoError(t, err)
		})
	}
}
