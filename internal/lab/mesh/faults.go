package mesh

import "fmt"

// tracked makes a node remember which of the VXLAN's flows it has sent: each
// flow inside has a source port of its own outside.
var tracked = []string{"table inet lab {", "chain out {", "type filter hook output priority filter;", "}", "chain relay {", "type filter hook forward priority filter;", "}", "}", "add rule " + remember}

var remember = fmt.Sprintf("inet lab out udp dport %d ct mark set 1", vxlanPort)

// DropNewVXLAN is the fault of a leader that this is all about: what begins to
// flow to a sibling from now on never reaches the node's wire, and nobody is
// told; what has flowed before goes on, and so does everything that is no
// VXLAN, such as a ping. It stays until Heal.
func (n *Network) DropNewVXLAN(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab out udp dport %d ct mark != 1 drop", vxlanPort))
}

// DropVXLAN drops all VXLAN that the node would send, whenever it began.
func (n *Network) DropVXLAN(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab out udp dport %d drop", vxlanPort))
}

// DropLarge drops the VXLAN's large packets alone: what is wrong with a path
// whose size somebody has got wrong.
func (n *Network) DropLarge(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab out udp dport %d ip length > 1000 drop", vxlanPort))
}

// DropRelayed is a leader that is well itself and relays nothing to its members:
// no probe within its location sees it.
func (n *Network) DropRelayed(node string) error {
	return n.harm(node, fmt.Sprintf("add rule inet lab relay iifname %s oifname %s drop", tunnel, vxlan))
}

// CutTunnel cuts the tunnel between two nodes, which is neither's own fault.
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

// Heal takes the node's fault away.
func (n *Network) Heal(node string) error {
	if err := n.Node(node).host.nft("flush chain inet lab out", "flush chain inet lab relay", "add rule "+remember); err != nil {
		return fmt.Errorf("healing node %s: %w", node, err)
	}
	return nil
}

// HealAll takes every fault away.
func (n *Network) HealAll() error {
	for _, node := range n.nodes {
		if err := n.Heal(node.Name); err != nil {
			return err
		}
	}
	return nil
}

// Unplug takes the node's pod off the network, as one that is deleted; what
// runs in it goes on.
func (n *Network) Unplug(node string) error { return n.plug(node, "down") }

// Plug puts it back.
func (n *Network) Plug(node string) error { return n.plug(node, "up") }

func (n *Network) plug(node, to string) error {
	if err := n.Node(node).host.ip([]string{"link set pod " + to}); err != nil {
		return fmt.Errorf("setting the pod of node %s %s: %w", node, to, err)
	}
	return nil
}
