// Package fleet is what a decision about one node must know of all others: how many there are and how many are unhealthy, which
// repairs are under way by the Nodes and by the ledger, what the limits leave, and the breakers that stop repairs in a storm. It is as
// pure as the core: the same Nodes, ledger and time give the same Fleet.
package fleet
