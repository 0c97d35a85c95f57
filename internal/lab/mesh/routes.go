package mesh

import "fmt"

// The mesh address that Kilo gives to the leader of the node's location. It is always IPv4.
func (n *Node) wireGuardIP() string { return fmt.Sprintf("10.4.0.%d", n.location) }

// Pods of the same location are reached through the VXLAN. Other locations are reached through the
// tunnel if the node leads, and otherwise through the VXLAN to the leader.
func (n *Network) routes(node *Node, ready map[string]bool, leads map[string]string) []string {
	var lines []string
	leading := leads[node.Location] == node.Name
	if leading {
		lines = append(lines, "link set "+tunnel+" up", node.address(node.between(), tunnel))
		for _, other := range n.nodes {
			if other.Location != node.Location && leads[other.Location] == other.Name {
				lines = append(lines, fmt.Sprintf("neigh replace %s lladdr %s nud permanent dev %s", other.between().Addr(), other.mac(tunnel), tunnel))
			}
		}
	}
	for _, other := range n.nodes {
		if other == node {
			continue
		}
		through := "" // to nowhere
		switch leader := n.names[leads[node.Location]]; {
		case !ready[other.Name], leader == nil:
		case other.Location == node.Location:
			through = fmt.Sprintf("via %s dev %s onlink", other.overlay().Addr(), vxlan)
		case leads[other.Location] == "":
		case leading:
			through = fmt.Sprintf("via %s dev %s onlink", other.between().Addr(), tunnel)
		default:
			through = fmt.Sprintf("via %s dev %s onlink", leader.overlay().Addr(), vxlan)
		}
		if through == "" {
			lines = append(lines, fmt.Sprintf("route replace unreachable %s", other.PodCIDR()))
			continue
		}
		lines = append(lines, fmt.Sprintf("route replace %s %s", other.PodCIDR(), through))
	}
	if !leading {
		lines = append(lines, "addr flush dev "+tunnel, "link set "+tunnel+" down")
	}
	return lines
}
