package ledger

import "time"

// Breaker is the circuit breaker of one scope, as the ledger stores it. A scope is the whole
// cluster or one zone. Without a stored Breaker, the breaker of the scope is closed: repairs may
// begin.
type Breaker struct {
	State BreakerState `json:"state"`
	// Since is when the breaker changed to this state. Unhealthy and Nodes are from the last count:
	// the unhealthy nodes and all nodes of the scope.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope last had too many unhealthy nodes. For a half-open breaker, it is
	// when the scope last had any unhealthy node. While Drydock cannot observe the fleet, Quiet
	// moves forward with the time, because that time does not count as calm.
	Quiet time.Time `json:"quiet"`
	// Trial is the id of the one repair that a half-open breaker allows. It is empty if none has
	// begun.
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
	// BreakerHalfOpen allows one disruptive repair, the trial, for the oldest fault. If the trial
	// cures its node, the breaker closes. Otherwise it opens again.
	BreakerHalfOpen BreakerState = "half-open"
)

// BreakerStates are all states.
var BreakerStates = []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}

// ScopeCluster is the scope of the breaker that counts all nodes.
const ScopeCluster = "cluster"
