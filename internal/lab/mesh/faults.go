package mesh

import "fmt"

// These rules mark the VXLAN flows that a node has sent. Each inner flow has its own outer source
// port, so the marks distinguish inner flows.
var tracked = []string{"table inet lab {", "chain out {", "type filter hook output priority filter;", "}", "chain relay {", "type filter hook forward priority filter;", "}", "}", "add rule " + remember}

var remember = fmt.Sprintf("inet lab out udp dport %d ct mark set 1", vxlanPort)

// DropNewVXLAN drops packets of new flows to a sibling without an error: the leader's fault that
// these tests are about. Earlier flows continue, and so does everything outside VXLAN, for example
// a ping. The fault stays until Heal.
func (n *Network) DropNewVXLAN(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab out udp dport %d ct mark != 1 drop", vxlanPort))
}

// DropVXLAN drops all VXLAN packets of the node, also of earlier flows.
func (n *Network) DropVXLAN(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab out udp dport %d drop", vxlanPort))
}

// DropLarge drops only the VXLAN's large packets, as on a path with a wrong MTU.
func (n *Network) DropLarge(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab out udp dport %d ip length > 1000 drop", vxlanPort))
}

// DropRelayed makes a leader drop all packets that it should relay to its members. No probe within
// its location shows the fault.
func (n *Network) DropRelayed(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab relay iifname %s oifname %s drop", tunnel, vxlan))
}

// CutTunnel cuts the tunnel between two nodes. Neither of the nodes has a fault.
func (n *Network) CutTunnel(a, b string) error {
	for _, of := range [][2]string{{a, b}, {b, a}} {
		rule := fmt.Sprintf("add rule inet lab out ip daddr %s udp dport %d drop", n.Node(of[1]).HostIP(), tunnelPort)
		if err := n.harm(of[0], rule); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) harm(node, rule string) error {
	if err := n.Node(node).host.nft("flush chain inet lab out", "flush chain inet lab relay", rule); err != nil {
		return fmt.Errorf("breaking node %s: %w", node, err)
	}
	return nil
}

// Heal removes the node's fault.
func (n *Network) Heal(node string) error {
	if err := n.Node(node).host.nft("flush chain inet lab out", "flush chain inet lab relay", "add rule "+remember); err != nil {
		return fmt.Errorf("healing node %s: %w", node, err)
	}
	return nil
}

// HealAll removes every fault.
func (n *Network) HealAll() error {
	for _, node := range n.nodes {
		if err := n.Heal(node.Name); err != nil {
			return err
		}
	}
	return nil
}

// Unplug disconnects the node's pod from the network, as if the pod was deleted. Its processes
// continue.
func (n *Network) Unplug(node string) error { return n.plug(node, "down") }

// Plug reconnects the pod.
func (n *Network) Plug(node string) error { return n.plug(node, "up") }

func (n *Network) plug(node, to string) error {
	if err := n.Node(node).host.ip([]string{"link set pod " + to}); err != nil {
		return fmt.Errorf("setting the pod of node %s %s: %w", node, to, err)
	}
	return nil
}
