package mesh

import "fmt"

// Cut takes the node off the wire, as one that has no power is: nothing comes
// from it, and whatever is sent to it vanishes. What runs on it goes on.
func (n *Network) Cut(node string) error { return n.wired(node, "down") }

// Join puts it back.
func (n *Network) Join(node string) error { return n.wired(node, "up") }

func (n *Network) wired(node, to string) error {
	if err := n.wire.ip([]string{"link set " + n.Node(node).port() + " " + to}); err != nil {
		return fmt.Errorf("setting the wire of node %s %s: %w", node, to, err)
	}
	return nil
}

// Silence keeps the agent of the node from checking in, as on one without
// power, until Resume or the next StartKilo.
func (k *Kilo) Silence(node string) { k.silence(node, true) }

// Resume lets it check in again.
func (k *Kilo) Resume(node string) { k.silence(node, false) }

func (k *Kilo) silence(node string, silent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent[node] = silent
}
