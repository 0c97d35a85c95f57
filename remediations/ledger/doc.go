// Package ledger is the ConfigMap that fences disruptive repairs, written by the leader alone and by compare-and-swap: the slots of
// those under way, those begun on each machine, cures that may yet relapse, moves of leadership, and what breakers say. It changes
// values in memory; package engine reads and saves them.
package ledger
