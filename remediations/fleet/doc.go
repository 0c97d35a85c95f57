// Package fleet provides the facts about all other nodes that a decision about one node needs. It
// counts nodes, unhealthy nodes, and the repairs in flight according to the Nodes and the ledger.
// It reports which limits are reached, and has the breakers that stop repairs in a storm. It is
// pure, like the core: the same Nodes, ledger and time give the same Fleet.
package fleet
