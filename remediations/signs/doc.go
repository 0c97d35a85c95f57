// Package signs evaluates the signs, beside the alert, that a node is ill: the Node itself, its
// lease, its GPUs, and other systems' readings of the node. It reads nothing itself. It also counts
// the leases of all nodes, which distinguishes a broken connection to the nodes from broken nodes.
package signs
