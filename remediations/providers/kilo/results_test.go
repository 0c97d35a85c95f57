package kilo

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

func resultsOf(t *testing.T, local, cross map[string]string) results {
	t.Helper()
	return resultsIn(t, places(local, cross), matrix(local), matrix(cross))
}

// resultsIn returns the results of both answers, with the Nodes at their places in the view.
func resultsIn(t *testing.T, v view, local, cross model.Matrix) results {
	t.Helper()
	l, c := newReader(v, "east", true), newReader(v, "east", false)
	for _, series := range local {
		require.NoError(t, l.read(series))
	}
	for _, series := range cross {
		require.NoError(t, c.read(series))
	}
	return newResults(l, c, 5*time.Minute)
}

// places are the Nodes in "src@location>dst". A Node without a location is in the east.
func places(said ...map[string]string) view {
	at := map[string]string{}
	for _, words := range said {
		for p := range words {
			src, dst, _ := strings.Cut(p, ">")
			src, location, elsewhere := strings.Cut(src, "@")
			dst, _, _ = strings.Cut(dst, "/")
			if at[dst] == "" {
				at[dst] = "east"
			}
			if elsewhere {
				at[src] = location
			} else if at[src] == "" {
				at[src] = "east"
			}
		}
	}
	var v view
	for name, location := range at {
		v = append(v, member{Node: election.Node{Name: name, Location: location}})
	}
	return v
}

func members(names ...string) []member {
	var out []member
	for _, n := range names {
		out = append(out, member{Node: election.Node{Name: n, Location: "east"}})
	}
	return out
}

// said returns good results of all names about each other, except those in but.
func said(names []string, but map[string]string) map[string]string {
	out := map[string]string{}
	for _, a := range names {
		for _, b := range names {
			if a != b {
				out[a+">"+b] = "11111"
			}
		}
	}
	maps.Copy(out, but)
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" })
	return out
}

func TestASuccessorPassesProbesToItsSiblings(t *testing.T) {
	long := strings.Repeat("1", 23)
	for name, c := range map[string]struct {
		nodes []string // the first leads, the second is the candidate
		// repaired is under repair.
		repaired string
		pairs    bool // providers.kilo.pairs
		but      map[string]string
		want     string // empty: it may succeed
		blind    bool
	}{
		"all is well":                      {nodes: []string{"d", "t", "m", "n"}},
		"the leader is not reached":        {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"t>d": "0", "d>t": "0", "m>d": "0"}},
		"a sibling is not reached":         {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"t>m": "1110"}, want: "does not reach its siblings m"},
		"it was not for a moment":          {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"t>m": "1011"}},
		"by one protocol alone it is not":  {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"t>m/udp": "0"}, want: "does not reach its siblings m"},
		"two siblings do not reach it":     {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"m>t": "0", "n>t": "0"}, want: "it may be faulty itself: in the last 5m, m, n"},
		"one alone says so":                {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"m>t": "0"}},
		"the leader's own word is nothing": {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"m>t": "0", "d>t": "0"}},
		"it was a suspect lately":          {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"m>t": "0000000" + long, "n>t": "0000000" + long}, want: "it may be faulty itself"},
		"a blink lately":                   {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"m>t": "00" + long, "n>t": "00" + long}},
		"the sibling itself is bad":        {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"t>m": "0", "n>m": "0", "m>t": "0", "m>n": "0"}},
		"two nodes alone":                  {nodes: []string{"d", "t"}, want: "set providers.kilo.pairs: true to allow the move"},
		"it was not heard":                 {nodes: []string{"d", "t", "m"}, but: map[string]string{"t>m": "", "t>d": ""}, want: "its agent reached no other member", blind: true},
		"it was heard, of the leader":      {nodes: []string{"d", "t", "m"}, but: map[string]string{"t>m": ""}, want: "its agent reached no other member", blind: true},
		"three nodes, and one is bad":      {nodes: []string{"d", "t", "m"}, but: map[string]string{"t>d": "0", "m>d": "0"}},
		"three nodes, and two are bad":     {nodes: []string{"d", "t", "m"}, but: map[string]string{"t>m": "0", "m>t": "0"}, want: "does not reach its siblings m"},
		"its siblings are all bad":         {nodes: []string{"d", "t", "m", "n"}, but: map[string]string{"t>m": "0", "n>m": "0", "t>n": "0", "m>n": "0"}, want: "its agent reached no other member", blind: true},

		"one that is under repair says nothing against it": {nodes: []string{"d", "t", "o", "m"}, repaired: "o", but: map[string]string{"t>o": "0"}},
		"nor does what it says itself":                     {nodes: []string{"d", "t", "o", "m", "n"}, repaired: "o", but: map[string]string{"o>t": "0", "m>t": "0"}},
		"another one that is not reached does":             {nodes: []string{"d", "t", "o", "m"}, repaired: "o", but: map[string]string{"t>m": "0"}, want: "does not reach its siblings m"},
		"a good word of it is one":                         {nodes: []string{"d", "t", "o", "m"}, repaired: "o", but: map[string]string{"t>m": "", "t>d": "0"}},
		"of three the old one is bad":                      {nodes: []string{"d", "t", "o"}, repaired: "o", but: map[string]string{"t>o": "0", "o>t": "0", "d>o": "0", "o>d": "0"}},
		"what the leader says of it is no proof":           {nodes: []string{"d", "t", "o"}, repaired: "o", but: map[string]string{"t>o": "0", "t>d": ""}, want: "its agent reached no other member than the leader", blind: true},
		"of three it reaches nobody":                       {nodes: []string{"d", "t", "o"}, repaired: "o", but: map[string]string{"t>o": "0", "t>d": "0"}, want: "it does not reach the leader d, and its siblings are under repair: o"},
		"two nodes, and pairs may":                         {nodes: []string{"d", "t"}, pairs: true},
		"two nodes, and it does not reach the leader":      {nodes: []string{"d", "t"}, pairs: true, but: map[string]string{"t>d": "1110"}, want: "it does not reach the leader d"},
		"two nodes, and it does not by one protocol":       {nodes: []string{"d", "t"}, pairs: true, but: map[string]string{"t>d/udp": "0"}, want: "it does not reach the leader d"},
		"two nodes, and it said nothing":                   {nodes: []string{"d", "t"}, pairs: true, but: map[string]string{"t>d": ""}, want: "no probe from it to the leader d in the last 5m", blind: true},
		"two nodes, and the leader does not reach it":      {nodes: []string{"d", "t"}, pairs: true, but: map[string]string{"d>t": "1110"}, want: "the leader d does not reach it: the path between the two nodes is faulty"},
		"two nodes, and the leader said nothing":           {nodes: []string{"d", "t"}, pairs: true, but: map[string]string{"d>t": ""}, want: "no probe from the leader d to it in the last 5m", blind: true},
		"of three pairs change nothing":                    {nodes: []string{"d", "t", "m"}, pairs: true, but: map[string]string{"t>m": ""}, want: "its agent reached no other member", blind: true},
		"the leader does not speak for those not asked":    {nodes: []string{"d", "t", "o", "m"}, repaired: "o", but: map[string]string{"t>o": "0", "t>m": ""}, want: "its agent reached no other member than the leader", blind: true},
	} {
		t.Run(name, func(t *testing.T) {
			all := members(c.nodes...)
			for i := range all {
				if all[i].Name == c.repaired {
					all[i].repair = "it has a repair of its own"
				}
			}
			w := resultsOf(t, said(c.nodes, c.but), nil)
			w.pairs = c.pairs
			_, known, why := w.candidate("t", "d", all, w.accusers(all, suspects(all, "d"), true))
			require.Equal(t, !c.blind, known)
			if c.want == "" {
				require.Empty(t, why)
			} else {
				require.Contains(t, why, c.want)
			}
		})
	}
}

func TestALocationIsReachedThroughItsLeader(t *testing.T) {
	four := []string{"l", "a", "b", "c"}
	bad := func(n string) map[string]string {
		out := map[string]string{}
		for _, o := range four {
			if o != n {
				out[o+">"+n], out[n+">"+o] = "0", "0"
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		local, cross map[string]string
		want         string // empty: it is reached
		// unknown: no other location has reported any member.
		unknown bool
	}{
		"by one location":          {cross: map[string]string{"w@west>a": "1", "w@west>b": "1", "w@west>c": "1"}},
		"some of it was not asked": {cross: map[string]string{"w@west>a": "1"}},
		"not at all":               {cross: map[string]string{"w@west>l": "1", "w@west>a": "0", "w@west>b": "0"}, want: "other locations do not reach 2 of 2 members: a from west; b from west"},
		"the leader alone":         {cross: map[string]string{"w@west>l": "1"}, want: "in the last 45s, no other location has probed a member", unknown: true},
		"nobody was asked":         {want: "no other location has probed a member", unknown: true},
		"not since a moment ago":   {cross: map[string]string{"w@west>a": "1110"}, want: "1 of 1"},
		"since a moment ago":       {cross: map[string]string{"w@west>a": "0001"}},
		"by TCP alone":             {cross: map[string]string{"w@west>a/tcp": "1", "w@west>a/udp": "0"}, want: "1 of 1"},
		"one of many is down":      {cross: map[string]string{"w@west>a": "1", "w@west>b": "1", "w@west>c": "0"}, want: "other locations do not reach 1 of 3 members: c from west"},
		"the one that is down is so among its siblings":        {local: bad("c"), cross: map[string]string{"w@west>a": "1", "w@west>b": "1", "w@west>c": "0"}},
		"all are down among their siblings, and nobody proves": {local: map[string]string{"l>a": "0", "b>a": "0"}, cross: map[string]string{"w@west>a": "0"}, want: "no other location has probed a member"},
		"one location of three is cut off":                     {cross: map[string]string{"w@west>a": "0", "n@north>a": "1", "s@south>a": "1"}},
		"one location of two is cut off":                       {cross: map[string]string{"w@west>a": "0", "n@north>a": "1"}},
		"two locations of three are":                           {cross: map[string]string{"w@west>a": "0", "s@south>a": "0", "n@north>a": "1"}, want: "a from south, west"},
		"most of another location reaches it":                  {cross: map[string]string{"w@west>a": "0", "v@west>a": "1", "u@west>a": "1"}},
		"half of another location does not":                    {cross: map[string]string{"w@west>a": "0", "v@west>a": "1"}, want: "1 of 1"},
		"its own location's word is none":                      {cross: map[string]string{"b@east>a": "1"}, want: "no other location has probed a member", unknown: true},
		"a node that is no member is none":                     {cross: map[string]string{"w@west>z": "1"}, want: "no other location has probed a member", unknown: true},
		"what the agent no longer says is of a mesh before":    {cross: map[string]string{"w@west>b": "1", "w@west>a": "000 "}},
	} {
		t.Run(name, func(t *testing.T) {
			ok, known, why := resultsOf(t, c.local, c.cross).reached(members(four...), "l")
			require.Equal(t, c.want == "", ok, why)
			require.Equal(t, !c.unknown, known, why)
			require.Contains(t, why, c.want)
		})
	}
}

// TestOfTwoSeriesOfAPairTheOneCountsThatSpokeLast: the series differ in their roles, which are
// labels and change with the leader.
func TestOfTwoSeriesOfAPairTheOneCountsThatSpokeLast(t *testing.T) {
	for _, c := range []struct {
		one, other string
		want       bool
	}{{"0000 ", "    1", true}, {"    1", "0000 ", true}, {"1111 ", "    0", false}, {"    0", "1111 ", false}} {
		twice := func(pair string) model.Matrix {
			m := append(matrix(map[string]string{pair: c.one}), matrix(map[string]string{pair: c.other})...)
			m[0].Metric["dst_role"], m[1].Metric["dst_role"] = "member", "leader"
			return m
		}
		w := resultsIn(t, places(map[string]string{"a>b": "", "w@west>b": ""}), twice("a>b"), twice("w@west>b"))
		require.Equal(t, c.want, w.local["a"]["b"].good, c)
		require.Equal(t, map[bool]tally{true: {good: 1}, false: {bad: 1}}[c.want], w.cross["b"]["west"], c)
	}
}

// TestAnAgentHasOneVoiceWhateverLocationItClaims: its location is that of the Node that Prometheus
// scrapes it on.
func TestAnAgentHasOneVoiceWhateverLocationItClaims(t *testing.T) {
	honest := map[string]string{"w@west>a": "0", "n@north>a": "0", "s@south>a": "0", "w@west>b": "0", "n@north>b": "0", "s@south>b": "0"}
	v := places(honest, map[string]string{"liar@liars>a": ""})
	reached := func(cross model.Matrix) bool {
		ok, _, _ := resultsIn(t, v, nil, cross).reached(members("l", "a", "b"), "l")
		return ok
	}
	lies := map[string]string{}
	for _, dst := range []string{"a", "b"} {
		for i, location := range []string{"nowhere", "elsewhere", "anywhere", "west", "north"} {
			lies["liar@"+location+">"+dst+"/"+protocols[i%2]] = "1"
		}
	}
	require.False(t, reached(append(matrix(honest), matrix(lies)...)))
	w := resultsIn(t, v, nil, append(matrix(honest), matrix(lies)...))
	require.Equal(t, []string{"liars", "north", "south", "west"}, slices.Sorted(maps.Keys(w.cross["a"])))
	fromTheEast := matrix(map[string]string{"a@west>b": "1", "b@north>a": "1"}) // members that claim to be elsewhere
	require.Empty(t, resultsIn(t, v, nil, fromTheEast).cross)

	well := map[string]string{}
	for p := range honest {
		well[p] = "1"
	}
	require.True(t, reached(matrix(well)), "the control")
}

func TestMalformedMetricIsIgnored(t *testing.T) {
	one := []model.SamplePair{{Timestamp: 1, Value: 1}}
	m := model.Matrix{
		nil,
		{Metric: model.Metric{"node": "a", "dst_node": "b", "proto": "tcp"}},
		{Metric: model.Metric{"node": "a", "dst_node": "b", "proto": "icmp"}, Values: one},
		{Metric: model.Metric{"node": "a", "dst_node": "a", "proto": "tcp"}, Values: one},
		{Metric: model.Metric{"node": "nobody", "dst_node": "b", "proto": "tcp"}, Values: one},
		{Metric: model.Metric{"node": "a", "dst_node": "nobody", "proto": "tcp"}, Values: one},
		{Metric: model.Metric{"src_node": "a", "dst_node": "b", "proto": "tcp"}, Values: one},
		{Metric: model.Metric{"node": "a", "proto": "tcp"}, Values: one},
		{Metric: model.Metric{"node": "a", "dst_node": "b", "proto": "tcp"}, Values: []model.SamplePair{
			{Timestamp: 1, Value: 0.5}, {Timestamp: 2, Value: model.SampleValue(math.NaN())}, {Timestamp: 3, Value: -1}, {Timestamp: 4, Value: model.SampleValue(math.Inf(1))},
		}},
	}
	v := places(map[string]string{"a>b": ""})
	require.True(t, resultsIn(t, v, m, m).none())
	require.False(t, resultsIn(t, v, append(m, &model.SampleStream{Metric: m[1].Metric, Values: one}), m).none(), "the control")
}

// TestTheSecondCandidatesWordsOutlastTheFirstAttempt: a location that is cut off reports nothing
// during three times: until the alert fires, which takes 90 s, until Drydock begins the repair, and
// while it waits for the first successor.
func TestTheSecondCandidatesWordsOutlastTheFirstAttempt(t *testing.T) {
	require.Greater(t, section(t).MaxAge, 90*time.Second+remediations.Shipped()["promote-leader"].Wait+time.Minute)
}
