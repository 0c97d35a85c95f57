package ledger

import "time"

// Breaker is the storm guard of one scope, as the ledger keeps it. A scope without one is closed, which is the state in
// which repairs go on.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when it took this state; Unhealthy and Nodes are the last count.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope was last too unhealthy; for a half-open one, when it last had any unhealthy node. Time in
	// which Drydock could not see the fleet is added to it, because nobody knows whether that time was calm.
	Quiet time.Time `json:"quiet"`
	// Trial is the repair that a half-open breaker lets through.
	Trial string `json:"trial,omitempty"`
	// Seen is when the breaker was last judged. Frozen: Drydock could not see the fleet then.
	Seen   time.Time `json:"seen,omitzero"`
	Frozen bool      `json:"frozen,omitempty"`
}

// BreakerState is one of three.
type BreakerState string

const (
	// BreakerClosed: repairs go on.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen: no disruptive repair begins.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen: one disruptive repair, of the oldest fault; how it ends decides.
	BreakerHalfOpen BreakerState = "half-open"
)

// BreakerStates is the closed list.
var BreakerStates = []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}

// ScopeCluster is the breaker over all nodes.
const ScopeCluster = "cluster"
