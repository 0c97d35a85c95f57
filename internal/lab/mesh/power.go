package mesh

import "fmt"

// Cut disconnects the node from the wire, like a loss of power. Its processes continue.
func (n *Network) Cut(node string) error { return n.wired(node, "down") }

// Join reconnects the node to the wire.
func (n *Network) Join(node string) error { return n.wired(node, "up") }

func (n *Network) wired(node, to string) error {
	if err := n.wire.ip([]string{"link set " + n.Node(node).port() + " " + to}); err != nil {
		return fmt.Errorf("setting the wire of node %s %s: %w", node, to, err)
	}
	return nil
}

// Silence stops the check-ins of the node's agent, as a loss of power does. They continue after
// Resume or the next StartKilo.
func (k *Kilo) Silence(node string) { k.silence(node, true) }

// Resume lets the node's agent check in again.
func (k *Kilo) Resume(node string) { k.silence(node, false) }

func (k *Kilo) silence(node string, silent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent[node] = silent
}
