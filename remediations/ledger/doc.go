// Package ledger reads and changes the ledger, the ConfigMap that limits disruptive repairs. Only
// the leader writes the ledger, by compare-and-swap. The ledger has the slots of repairs in flight,
// the repairs begun on each machine, and the cures that may still relapse. It also has the moves of
// mesh leadership and the state of the breakers. This package changes values in memory. Package
// engine reads and saves them.
package ledger
