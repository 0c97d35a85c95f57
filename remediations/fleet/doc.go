// Package fleet provides the facts about all other nodes that a decision about one node needs. It
// counts nodes, unhealthy nodes, and the repairs in flight. Its sources are the Nodes and the
// ledger, the ConfigMap with Drydock's records about the whole cluster. It reports which limits are
// reached, and has the circuit breakers that stop repairs while too many nodes are unhealthy. The
// package is pure: the same Nodes, ledger and time give the same Fleet.
package fleet
