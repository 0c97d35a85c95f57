package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/lifecycle"
)

// twins holds every step if another Node has the same spec.providerID: the step could reach that
// Node's machine.
func twins(c *lifecycle.Candidate) *lifecycle.Finding {
	if c.Fleet == nil {
		return nil
	}
	if twin := c.Fleet.Twin(c.Node); twin != "" {
		return &lifecycle.Finding{Message: SaysTwins(c.Node, twin)}
	}
	return nil
}

// SaysTwins returns the message that two Nodes have the same machine, and what to do.
func SaysTwins(n *corev1.Node, twin string) string {
	return fmt.Sprintf("Nodes %s and %s have the same spec.providerID %.120q, so a step on one would reach the machine of the other; delete the Node that is no longer the machine's: kubectl delete node NAME", n.Name, twin, n.Spec.ProviderID)
}

// unprovable holds a restart of the machine that a new boot ID could not prove: the Node reports
// none, or another Node has the same.
func unprovable(c *lifecycle.Candidate) *lifecycle.Finding {
	if c.Fleet == nil || !c.Remediation().Restarts {
		return nil
	}
	if c.Node.Status.NodeInfo.BootID == "" {
		return lifecycle.Because("a reboot of Node %s could not be proven: the Node reports no boot ID (status.nodeInfo.bootID)", c.Node.Name)
	}
	if other := c.Fleet.SameBoot(c.Node); other != "" {
		return lifecycle.Because("a reboot of Node %s could not be proven: Node %s has the same boot ID %.40q. Nodes that are containers share the boot ID of their host. If one of the two Nodes is only left over, delete that Node",
			c.Node.Name, other, c.Node.Status.NodeInfo.BootID)
	}
	return nil
}
