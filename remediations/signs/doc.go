// Package signs says what speaks for or against a node being ill, beside the alert: what the Node shows, its lease, its GPUs, and
// what others read of it. It judges, and reads nothing itself. It also counts the leases of all nodes, which tells a broken way to
// the nodes from broken nodes.
package signs
