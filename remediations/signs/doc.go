// Package signs judges what shows that a node is ill, beside the alert: the Node itself, its lease,
// its GPUs, and other systems' readings of it. It reads nothing itself. It also counts the leases
// of all nodes, which distinguishes a broken path to the nodes from broken nodes.
package signs
