package kilo

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
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

func (c leaderCase) nodes() []Node {
	var out []Node
	for _, n := range c.Nodes {
		a := map[string]string{
			PublicKeyKey: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
			LastSeenKey:  strconv.FormatInt(noon.Unix()-int64(n.SecondsSinceSeen), 10),
		}
		for k, v := range n.Annotations {
			a[k] = v
		}
		out = append(out, Read(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, Annotations: a, Labels: n.Labels},
			Spec:       corev1.NodeSpec{PodCIDR: n.PodCIDR},
		}, DefaultTopologyLabel))
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
		for location, members := range Locations(c.nodes(), noon) {
			got[location] = Elect(members)
		}
		require.Equal(t, c.Leaders, got, "case %d", i)
	}
}

// ruled is the rule of Kilo's election as it is said in words, and slowly: of the members by name, the first that is
// annotated and public; if there is none, the first that is annotated; if none is, the first that is public; if none is
// that either, the first.
func ruled(members []Node) string {
	public := func(n Node) bool {
		ip := net.ParseIP(n.Endpoint.Addr().String())
		for _, block := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/16"} {
			_, in, err := net.ParseCIDR(block)
			if err != nil || ip == nil || in.Contains(ip) {
				return false
			}
		}
		return true
	}
	annotated := func(n Node) bool { return n.Leader }
	for _, is := range [][]func(Node) bool{{annotated, public}, {annotated}, {public}, {}} {
		best := ""
		for _, n := range members {
			fits := true
			for _, q := range is {
				fits = fits && q(n)
			}
			if fits && (best == "" || n.Name < best) {
				best = n.Name
			}
		}
		if best != "" {
			return best
		}
	}
	return ""
}

var endpoints = []string{
	"10.0.0.1:51820", "172.16.0.1:51820", "172.32.0.1:51820", "192.168.1.1:51820", "100.64.0.1:51820", "203.0.113.9:51820", "127.0.0.1:51820",
	"[fd00::1]:51820", "[fd01::1]:51820", "[2001:db8::1]:51820", "[fe80::1]:51820", "[::ffff:10.0.0.1]:51820", "[::ffff:198.51.100.1]:51820",
}

// location draws a location's members, sorted by name, and perhaps some whose endpoints are names.
func location(t *rapid.T, most int, hosts bool) []Node {
	from := endpoints
	if hosts {
		from = append([]string{"vpn.example.com:51820"}, endpoints...)
	}
	var members []Node
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9.-]{0,3}[a-z0-9]`), 1, most, rapid.ID[string]).Draw(t, "names") {
		n := Node{Name: name, Location: "east", Leader: rapid.Bool().Draw(t, "annotated")}
		var ok bool
		n.Endpoint, n.Host, ok = endpoint(rapid.SampledFrom(from).Draw(t, "endpoint"))
		require.True(t, ok)
		members = append(members, n)
	}
	sortByName(members)
	return members
}

func TestOurElectionIsTheRuleInWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := location(t, 8, false)
		require.Equal(t, ruled(members), Elect(members))
		shuffled := rapid.Permutation(members).Draw(t, "order")
		require.Equal(t, Elect(members), ruled(shuffled), "the order in which they are read plays no part")
		sortByName(shuffled)
		require.Equal(t, members, shuffled)
	})
	require.Empty(t, Elect(nil))
}

// TestANameIsForeseenOnlyWhereItMakesNoDifference: whatever public or private addresses the names have, each for itself.
func TestANameIsForeseenOnlyWhereItMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := location(t, 5, true)
		could := map[string]bool{}
		resolve(members, func(as []Node) { could[ruled(as)] = true })
		leader, ok := Foresee(members)
		require.Equal(t, len(could) == 1, ok)
		if ok {
			require.True(t, could[leader])
		}
	})
}

// resolve calls f with each way in which the names among the endpoints may resolve.
func resolve(members []Node, f func([]Node)) {
	i := slices.IndexFunc(members, func(n Node) bool { return n.Host != "" })
	if i < 0 {
		f(members)
		return
	}
	for _, at := range []string{"10.0.0.1:51820", "203.0.113.9:51820"} {
		as := slices.Clone(members)
		as[i].Host, as[i].Endpoint = "", netip.MustParseAddrPort(at)
		resolve(as, f)
	}
}

// TestAMoveElectsWhomItSays: in Kilo's own cases, and in all that can be drawn. One by a key alone is always possible.
func TestAMoveElectsWhomItSays(t *testing.T) {
	all := cases(t)
	check := func(t require.TestingT, members []Node) {
		from := Elect(members)
		for _, to := range members {
			change, ok := Move(members, from, to.Name)
			require.Equal(t, to.Name != from, ok, "%s of %s", to.Name, to.Location)
			require.NotContains(t, change.Remove, to.Name)
			if ok {
				require.Equal(t, to.Name, Elect(apply(members, change)))
			}
		}
	}
	for _, c := range all {
		for _, members := range Locations(c.nodes(), noon) {
			check(t, members)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, location(t, 8, false)) })
}

// TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead, nor nobody: after every single edit Kilo's rule gives the old
// leader or the successor, whatever the names among the endpoints resolve to, and the undoing ends where the move began.
func TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		var members []member
		for _, n := range location(t, 7, rapid.Bool().Draw(t, "names")) {
			k := member{Node: n}
			if value := rapid.SampledFrom([]string{"", "true", "false"}).Draw(t, "value"); n.Leader {
				k.key = &value
			}
			members = append(members, k)
		}
		from, ok := Foresee(nodes(members))
		if !ok {
			return
		}
		to := rapid.SampledFrom(members).Draw(t, "successor").Name
		edits, err := plan(members, from, to)
		if err != nil {
			require.True(t, to == from || slices.ContainsFunc(members, func(k member) bool { return k.Host != "" }), "%v", err)
			return
		}
		moved++
		move := moveOf("east", from, to, edits)
		after := step(t, members, edits, from, to)
		require.Equal(t, to, Elect(nodes(after)))
		again := step(t, after, back(move), from, to)
		require.Equal(t, members, again, "all is as it was")
		require.Equal(t, members, step(t, again, back(move), from, to), "and stays so")

		// The move broke off somewhere: what was not done needs no undoing, and what was is undone.
		broken := step(t, members, edits[:rapid.IntRange(0, len(edits)).Draw(t, "broken off after")], from, to)
		require.Equal(t, members, step(t, broken, back(move), from, to))
	})
	require.Positive(t, moved)
}

// step makes the edits, each if the key is as it says, and asks the rule in words after each.
func step(t *rapid.T, members []member, edits []edit, from, to string) []member {
	now := slices.Clone(members)
	for _, e := range edits {
		k := find(now, e.node)
		require.NotNil(t, k)
		if !same(k.key, e.from) {
			continue
		}
		k.key, k.Leader = e.to, e.to != nil
		resolve(nodes(now), func(as []Node) { require.Contains(t, []string{from, to}, ruled(as), "after %s", e) })
	}
	return now
}

func apply(members []Node, c Change) []Node {
	out := append([]Node(nil), members...)
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
