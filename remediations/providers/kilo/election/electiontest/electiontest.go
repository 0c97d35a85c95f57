// Package electiontest has what the tests of Kilo's election and of moves share: a second, simple
// form of the rule, and random locations.
package electiontest

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// Rule is Kilo's election, simple and slow: the first member by name in the best of four ranks,
// which are annotated and public, annotated, public, any.
func Rule(members []election.Node) string {
	public := func(n election.Node) bool {
		ip := net.ParseIP(n.Endpoint.Addr().String())
		for _, block := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/16"} {
			_, in, err := net.ParseCIDR(block)
			if err != nil || ip == nil || in.Contains(ip) {
				return false
			}
		}
		return true
	}
	annotated := func(n election.Node) bool { return n.Leader }
	for _, is := range [][]func(election.Node) bool{{annotated, public}, {annotated}, {public}, {}} {
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

// Location draws the members of a random location, sorted by name. hosts allows host names as
// endpoints.
func Location(t *rapid.T, most int, hosts bool) []election.Node {
	from := endpoints
	if hosts {
		from = append([]string{"vpn.example.com:51820"}, endpoints...)
	}
	var members []election.Node
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9.-]{0,3}[a-z0-9]`), 1, most, rapid.ID[string]).Draw(t, "names") {
		n := election.Node{Name: name, Location: "east", Leader: rapid.Bool().Draw(t, "annotated")}
		text := rapid.SampledFrom(from).Draw(t, "endpoint")
		read := election.Read(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{election.EndpointKey: text}}}, "")
		require.Empty(t, read.Malformed)
		n.Endpoint, n.Host = read.Endpoint, read.Host
		members = append(members, n)
	}
	Sort(members)
	return members
}

// Sort sorts the members by name.
func Sort(members []election.Node) {
	slices.SortFunc(members, func(a, b election.Node) int { return strings.Compare(a.Name, b.Name) })
}

// Resolve calls f with each possible resolution of the host names among the endpoints.
func Resolve(members []election.Node, f func([]election.Node)) {
	i := slices.IndexFunc(members, func(n election.Node) bool { return n.Host != "" })
	if i < 0 {
		f(members)
		return
	}
	for _, at := range []string{"10.0.0.1:51820", "203.0.113.9:51820"} {
		as := slices.Clone(members)
		as[i].Host, as[i].Endpoint = "", netip.MustParseAddrPort(at)
		Resolve(as, f)
	}
}
