package ledger

import "time"

// Breaker is the stored circuit breaker of the whole cluster or of one zone. Without one, repairs
// may begin.
type Breaker struct {
	State BreakerState `json:"state"`
	// Unhealthy and Nodes are from the last count.
	Since     time.Time `json:"since"`
	Unhealthy int       `json:"unhealthy"`
	Nodes     int       `json:"nodes"`
	// Quiet is when the scope last had too many unhealthy nodes or, for a half-open breaker, any.
	// It moves forward while the fleet cannot be observed, because that time does not count as
	// calm.
	Quiet time.Time `json:"quiet"`
	// Trial is the one repair that a half-open breaker allows, or empty.
	Trial string `json:"trial,omitempty"`
	// Seen is when the breaker was last evaluated. Frozen means that the fleet could not be
	// observed then.
	Seen   time.Time `json:"seen,omitzero"`
	Frozen bool      `json:"frozen,omitempty"`
}

// BreakerState is the state of a breaker.
type BreakerState string

const (
	BreakerClosed BreakerState = "closed"
	// BreakerOpen lets no disruptive repair begin.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen allows one disruptive repair, the trial, for the oldest fault. If it cures
	// its node, the breaker closes. Otherwise it opens again.
	BreakerHalfOpen BreakerState = "half-open"
)

// BreakerStates are all states.
var BreakerStates = []BreakerState{BreakerClosed, BreakerOpen, BreakerHalfOpen}

// ScopeCluster is the scope of the breaker that counts all nodes.
const ScopeCluster = "cluster"
