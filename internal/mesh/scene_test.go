package mesh

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.APIServerOnly})
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// kiloNode is a Node as Kilo's agent annotates it.
func kiloNode(name, location string, seen time.Time, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{
			election.EndpointKey:    "10.1.0.1:51820",
			election.InternalIPKey:  "10.1.0.1/32",
			election.PublicKeyKey:   base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
			election.LastSeenKey:    strconv.FormatInt(seen.Unix(), 10),
			election.GranularityKey: "location",
		}},
		Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24"},
	}
	if location != "" {
		n.Labels[election.DefaultTopologyLabel] = location
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func leads(n *corev1.Node) { n.Annotations[election.LeaderKey] = "" }
func without(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Annotations, key) }
}
func annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func read(nodes ...*corev1.Node) []election.Node {
	var out []election.Node
	for _, n := range nodes {
		out = append(out, election.Read(n, election.DefaultTopologyLabel))
	}
	return out
}

// grid is a mesh of locations with this many members each, named a-0, a-1 … z-9, all with agents.
// The first member of each location leads.
func grid(self string, locations, members int) Topology {
	var nodes []*corev1.Node
	agents := Agents{}
	for l := range locations {
		for m := range members {
			name := fmt.Sprintf("l%03d-%03d", l, m)
			nodes = append(nodes, kiloNode(name, fmt.Sprintf("l%03d", l), noon))
			agents[name] = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(l), byte(m)}), 9099)}
		}
	}
	return NewTopology(self, read(nodes...), agents, noon)
}
