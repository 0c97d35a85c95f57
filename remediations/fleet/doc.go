// Package fleet provides what a decision about one node must know about all others. It counts nodes
// and unhealthy nodes, and the repairs under way by the Nodes and the ledger. It has what the
// limits leave, and the breakers that stop repairs in a storm. It is pure, like the core: the same
// Nodes, ledger and time give the same Fleet.
package fleet
