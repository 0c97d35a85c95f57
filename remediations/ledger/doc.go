// Package ledger reads and changes the ledger, the ConfigMap that limits disruptive repairs. Only
// the leader writes the ledger, by compare-and-swap.
//
// The ledger has the slots of repairs in flight, which count against the limits. It also has the
// repairs begun on each machine, and the cures whose alert may still return. The moves of mesh
// leadership and the state of the circuit breakers are in it, too. This package changes values in
// memory. Package engine reads and saves them.
package ledger
