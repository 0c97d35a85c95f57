package ledger

import "time"

// Breaker is the circuit breaker of one scope, as the ledger stores it. A scope is a zone or the
// whole cluster. A scope without a Breaker is closed: repairs may begin.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when the breaker changed to this state. Unhealthy and Nodes are the last count of the
	// scope's nodes.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope last had too many unhealthy nodes. For a half-open breaker, it is when
	// the scope last had any unhealthy node. Time while Drydock could not observe the fleet is added
	// to Quiet, because it is unknown whether that time was calm.
	Quiet time.Time `json:"quiet"`
	// Trial is the one repair that a half-open breaker allows.
	Trial string `json:"trial,omitempty"`
	// Seen is when the breaker was last evaluated. Frozen means that Drydock could not observe the
	// fleet then.
	Seen   time.Time `json:"seen,omitzero"`
	Frozen bool      `json:"frozen,omitempty"`
}

// BreakerState is the state of a breaker.
type BreakerState string

const (
	// BreakerClosed allows repairs.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen allows no disruptive repair to begin.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen allows one disruptive repair, of the oldest fault. The end of that repair closes
	// or opens the breaker.
	BreakerHalfOpen BreakerState = "half-open"
)

// BreakerStates are all states.
var BreakerStates = []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}

// ScopeCluster is the scope with all nodes.
const ScopeCluster = "cluster"
