package ledger

import "time"

// Breaker is the storm guard of one scope, as the ledger stores it. A scope without a Breaker is
// closed: repairs continue.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when the breaker took this state. Unhealthy and Nodes are the last count.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope was last too unhealthy; for a half-open breaker, when it last had any
	// unhealthy node. Time while Drydock could not see the fleet is added to Quiet, because it is
	// unknown whether that time was calm.
	Quiet time.Time `json:"quiet"`
	// Trial is the repair that a half-open breaker lets through.
	Trial string `json:"trial,omitempty"`
	// Seen is when the breaker was last judged. Frozen: Drydock could not see the fleet then.
	Seen   time.Time `json:"seen,omitzero"`
	Frozen bool      `json:"frozen,omitempty"`
}

// BreakerState is one of three states.
type BreakerState string

const (
	// BreakerClosed: repairs continue.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen: no disruptive repair begins.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen: one disruptive repair begins, of the oldest fault. Its end decides.
	BreakerHalfOpen BreakerState = "half-open"
)

// BreakerStates is the closed list.
var BreakerStates = []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}

// ScopeCluster is the breaker over all nodes.
const ScopeCluster = "cluster"
