package mesh

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"drydock.dev/drydock/internal/lab"
)

// Network has the wire, the nodes on it and their pods. Its methods may be called concurrently.
type Network struct {
	ipv6  bool
	nodes []*Node
	names map[string]*Node
	wire  *namespace

	mu   sync.Mutex
	ends []func() // the cleanup, run from last to first
}

// New makes the network with these locations, or else with Locations. Pods reach pods on other
// nodes only after StartKilo. The first node of a location is <location>-1.
func New(locations ...Location) (*Network, error) { return newNetwork(&Network{}, locations) }

// NewIPv6 makes a network with only IPv6 addresses for pods.
func NewIPv6(locations ...Location) (*Network, error) {
	return newNetwork(&Network{ipv6: true}, locations)
}

func newNetwork(n *Network, locations []Location) (*Network, error) {
	if len(locations) == 0 {
		locations = Locations
	}
	if err := Supported(); err != nil {
		return nil, err
	}
	n.names = map[string]*Node{}
	if err := n.build(locations); err != nil {
		n.Close()
		return nil, fmt.Errorf("making a mesh: %w", err)
	}
	return n, nil
}

func (n *Network) build(locations []Location) (err error) {
	if n.wire, err = n.namespace(); err != nil {
		return err
	}
	if err := n.wire.set(router); err != nil {
		return err
	}
	for i, l := range locations {
		bridge := fmt.Sprintf("net%d", i+1)
		if err := n.wire.ip([]string{
			"link add " + bridge + " type bridge", "link set " + bridge + " up",
			fmt.Sprintf("addr add 10.%d.0.254/24 dev %s", i+1, bridge),
		}); err != nil {
			return err
		}
		for j := range l.Nodes {
			node := &Node{Name: fmt.Sprintf("%s-%d", l.Name, j+1), Location: l.Name, number: len(n.nodes) + 1, location: i + 1, ipv6: n.ipv6}
			if err := n.add(node, bridge); err != nil {
				return fmt.Errorf("adding node %s: %w", node.Name, err)
			}
		}
	}
	for _, node := range n.nodes {
		if err := n.acquaint(node); err != nil {
			return fmt.Errorf("telling node %s of the others: %w", node.Name, err)
		}
		if err := n.echo(node); err != nil {
			return fmt.Errorf("starting the pod of node %s: %w", node.Name, err)
		}
	}
	return nil
}

func (n *Network) namespace() (*namespace, error) {
	s, err := newNamespace()
	if err == nil {
		n.atEnd(s.close)
	}
	return s, err
}

func (n *Network) add(node *Node, bridge string) (err error) {
	if node.host, err = n.namespace(); err != nil {
		return err
	}
	if node.pod, err = n.namespace(); err != nil {
		return err
	}
	n.nodes = append(n.nodes, node)
	n.names[node.Name] = node
	if err := node.host.set(router); err != nil {
		return err
	}
	for _, of := range []*namespace{node.host, node.pod} {
		if !n.ipv6 {
			break
		}
		if err := of.set(router6); err != nil {
			return err
		}
	}
	port := node.port()
	if err := n.wire.ip([]string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, node.host.path()),
		fmt.Sprintf("link set %s master %s up", port, bridge),
	}); err != nil {
		return err
	}
	if err := node.host.ip([]string{
		"link set lo up", "link set eth0 up",
		fmt.Sprintf("addr add %s/24 dev eth0", node.HostIP()),
		"route add default via " + node.gateway(),
		fmt.Sprintf("link add %s address %s type vxlan id 1 dstport %d local %s dev eth0 nolearning", vxlan, node.mac(vxlan), vxlanPort, node.HostIP()),
		node.address(node.overlay(), vxlan),
		"link set " + vxlan + " up",
		// The tunnel stays down here. Kilo sets it up on the leaders only.
		fmt.Sprintf("link add %s address %s mtu %d type vxlan id 2 dstport %d local %s dev eth0 nolearning", tunnel, node.mac(tunnel), tunnelMTU, tunnelPort, node.HostIP()),
		fmt.Sprintf("link add pod mtu %d type veth peer name eth0 mtu %d netns %s", tunnelMTU, tunnelMTU, node.pod.path()),
		node.address(netip.PrefixFrom(node.podGateway(), node.PodCIDR().Bits()), "pod"), "link set pod up",
	}); err != nil {
		return err
	}
	if err := node.host.nft(tracked...); err != nil {
		return err
	}
	return node.pod.ip([]string{
		"link set lo up", "link set eth0 up",
		node.address(netip.PrefixFrom(node.PodIP(), node.PodCIDR().Bits()), "eth0"),
		fmt.Sprintf("route add default via %s", node.podGateway()),
	})
}

// A node needs the VXLAN addresses of its siblings, and the tunnel addresses of all other nodes.
func (n *Network) acquaint(node *Node) error {
	var ip, bridge []string
	for _, other := range n.nodes {
		if other == node {
			continue
		}
		bridge = append(bridge, fmt.Sprintf("fdb append %s dev %s dst %s", other.mac(tunnel), tunnel, other.HostIP()))
		if other.Location == node.Location {
			bridge = append(bridge, fmt.Sprintf("fdb append %s dev %s dst %s", other.mac(vxlan), vxlan, other.HostIP()))
			ip = append(ip, fmt.Sprintf("neigh replace %s lladdr %s nud permanent dev %s", other.overlay().Addr(), other.mac(vxlan), vxlan))
		}
	}
	if err := node.host.bridge(bridge); err != nil {
		return err
	}
	return node.host.ip(ip)
}

// Close ends the processes in the network, and then the network itself.
func (n *Network) Close() {
	n.mu.Lock()
	ends := n.ends
	n.ends = nil
	n.mu.Unlock()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
}

func (n *Network) atEnd(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends = append(n.ends, f)
}

// Nodes returns all nodes, location by location.
func (n *Network) Nodes() []*Node { return n.nodes }

// Node returns the node with that name. It panics if there is none.
func (n *Network) Node(name string) *Node {
	node := n.names[name]
	if node == nil {
		panic("the mesh has no node " + name)
	}
	return node
}

// Specs returns the nodes that the lab must create for this network.
func (n *Network) Specs() []lab.NodeSpec {
	var specs []lab.NodeSpec
	for _, node := range n.nodes {
		specs = append(specs, node.spec())
	}
	return specs
}

// StartProcess starts a process in a node's pod. It ends with the network.
func (n *Network) StartProcess(ctx context.Context, node string, s lab.Spec) (*lab.Process, error) {
	s.Args = append([]string{"--net=" + n.Node(node).pod.path(), "--", s.Path}, s.Args...)
	s.Path = "nsenter"
	p, err := lab.StartProcess(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("in the pod of node %s: %w", node, err)
	}
	n.atEnd(p.Kill)
	return p, nil
}
