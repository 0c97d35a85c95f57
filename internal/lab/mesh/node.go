package mesh

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
)

// Location is a group of nodes that reach each other directly.
type Location struct {
	Name  string
	Nodes int
}

// Locations are the default locations of a mesh. In two of them a leader's fault affects two other
// members, and in the third only one.
var Locations = []Location{{"west", 3}, {"east", 3}, {"cloud", 2}}

// Node is a node together with its pod.
type Node struct {
	Name, Location string
	// ScrapeAddress is where Prometheus scrapes the node's pod. Empty if it does not.
	ScrapeAddress string

	number, location int // counted from 1
	ipv6             bool
	host, pod        *namespace
	scrape           *forward // nil if the pod is not scraped
	scraped          string   // the address of the pod's metrics
}

// PodIP returns the pod's address.
func (n *Node) PodIP() netip.Addr { return n.podGateway().Next() }

func (n *Node) podGateway() netip.Addr { return n.PodCIDR().Addr().Next() }

// PodCIDR returns the range of the addresses of the node's pods.
func (n *Node) PodCIDR() netip.Prefix {
	return n.prefix(fmt.Sprintf("10.42.%d.0/24", n.number), fmt.Sprintf("fd42:0:0:%x::/64", n.number))
}

// Only the pods may have IPv6. The network below is always IPv4.
func (n *Node) prefix(ipv4, ipv6 string) netip.Prefix {
	if n.ipv6 {
		return netip.MustParsePrefix(ipv6)
	}
	return netip.MustParsePrefix(ipv4)
}

// HostIP returns the node's own address on the wire.
func (n *Node) HostIP() netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n.location), 0, byte(n.number)})
}

func (n *Node) gateway() string { return fmt.Sprintf("10.%d.0.254", n.location) }

func (n *Node) port() string { return fmt.Sprintf("port%d", n.number) }

func (n *Node) overlay() netip.Prefix {
	return n.prefix(fmt.Sprintf("10.100.%d.%d/24", n.location, n.number), fmt.Sprintf("fd64:0:0:%x::%x/64", n.location, n.number))
}

// between returns the tunnel address of the location's leader.
func (n *Node) between() netip.Prefix {
	return n.prefix(n.wireGuardIP()+"/16", fmt.Sprintf("fd04::%x/64", n.location))
}

// nodad makes an IPv6 address usable at once. Without it the kernel first searches for a duplicate,
// even with accept_dad 0.
func (n *Node) address(of netip.Prefix, device string) string {
	if n.ipv6 {
		return fmt.Sprintf("addr replace %s dev %s nodad", of, device)
	}
	return fmt.Sprintf("addr replace %s dev %s", of, device)
}

func (n *Node) mac(device string) string {
	if device == tunnel {
		return fmt.Sprintf("02:51:82:00:00:%02x", n.number)
	}
	return fmt.Sprintf("02:84:72:00:00:%02x", n.number)
}

const (
	vxlan      = "vxlan0"
	vxlanPort  = 8472
	tunnel     = "kilo0"
	tunnelPort = 51820
	// With this MTU, a pod's packet of full size fits into the tunnel, as with Kilo's --mtu=auto.
	tunnelMTU = 1420
)

func (n *Node) spec() lab.NodeSpec {
	return lab.NodeSpec{Name: n.Name, Labels: map[string]string{corev1.LabelTopologyRegion: n.Location}}
}
