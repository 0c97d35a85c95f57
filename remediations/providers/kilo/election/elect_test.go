package election_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations/providers/kilo/election"
	"drydock.dev/drydock/remediations/providers/kilo/election/electiontest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type leaderCase struct {
	Nodes []struct {
		Name                string
		Annotations, Labels map[string]string
		PodCIDR             string
		SecondsSinceSeen    int
	}
	Leaders map[string]string
}

func (c leaderCase) nodes() []election.Node {
	var out []election.Node
	for _, n := range c.Nodes {
		a := map[string]string{
			election.PublicKeyKey: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
			election.LastSeenKey:  strconv.FormatInt(noon.Unix()-int64(n.SecondsSinceSeen), 10),
		}
		for k, v := range n.Annotations {
			a[k] = v
		}
		out = append(out, election.Read(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, Annotations: a, Labels: n.Labels},
			Spec:       corev1.NodeSpec{PodCIDR: n.PodCIDR},
		}, election.DefaultTopologyLabel))
	}
	return out
}

func cases(t *testing.T) []leaderCase {
	t.Helper()
	f, err := os.Open("testdata/leader-cases.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var out []leaderCase
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c leaderCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		out = append(out, c)
	}
	require.NoError(t, lines.Err())
	return out
}

// TestElectionIsKilos: the cases were made with Kilo's own code.
func TestElectionIsKilos(t *testing.T) {
	for i, c := range cases(t) {
		got := map[string]string{}
		for location, members := range election.Locations(c.nodes(), noon) {
			got[location] = election.Elect(members)
		}
		require.Equal(t, c.Leaders, got, "case %d", i)
	}
}

func TestOurElectionIsTheRuleInWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := electiontest.Location(t, 8, false)
		require.Equal(t, electiontest.Rule(members), election.Elect(members))
		shuffled := rapid.Permutation(members).Draw(t, "order")
		require.Equal(t, election.Elect(members), electiontest.Rule(shuffled), "the order in which they are read plays no part")
		electiontest.Sort(shuffled)
		require.Equal(t, members, shuffled)
	})
	require.Empty(t, election.Elect(nil))
}

// TestANameIsForeseenOnlyWhereItMakesNoDifference: for every combination of public and private
// addresses of the names.
func TestANameIsForeseenOnlyWhereItMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := electiontest.Location(t, 5, true)
		could := map[string]bool{}
		electiontest.Resolve(members, func(as []election.Node) { could[electiontest.Rule(as)] = true })
		leader, ok := election.Foresee(members)
		require.Equal(t, len(could) == 1, ok)
		if ok {
			require.True(t, could[leader])
		}
	})
}

// TestAMoveElectsTheNamedNode: in Kilo's own cases, and in all random ones. A move by a key alone
// is always possible.
func TestAMoveElectsTheNamedNode(t *testing.T) {
	all := cases(t)
	check := func(t require.TestingT, members []election.Node) {
		from := election.Elect(members)
		for _, to := range members {
			change, ok := election.Move(members, from, to.Name)
			require.Equal(t, to.Name != from, ok, "%s of %s", to.Name, to.Location)
			require.NotContains(t, change.Remove, to.Name)
			if ok {
				require.Equal(t, to.Name, election.Elect(apply(members, change)))
			}
		}
	}
	for _, c := range all {
		for _, members := range election.Locations(c.nodes(), noon) {
			check(t, members)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, electiontest.Location(t, 8, false)) })
}

func apply(members []election.Node, c election.Change) []election.Node {
	out := append([]election.Node(nil), members...)
	for i := range out {
		if out[i].Name == c.Add {
			out[i].Leader = true
		}
		for _, r := range c.Remove {
			if out[i].Name == r {
				out[i].Leader = false
			}
		}
	}
	return out
}
