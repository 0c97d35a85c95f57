// Package ledger is the ConfigMap that fences disruptive repairs. Only the leader writes it, by
// compare-and-swap. It has the slots of repairs under way, the repairs begun on each machine, cures
// that may yet relapse, moves of leadership, and the state of the breakers. The package changes
// values in memory; package engine reads and saves them.
package ledger
