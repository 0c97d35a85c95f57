package remediations

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// OverdueFor is how long a repair in flight may outlive its deadline before it counts no more where only its Node shows it.
const OverdueFor = 5 * time.Minute

// ahead is how far a time may lie in the future: clocks are never quite the same.
const ahead = time.Minute

// farAway is later than any time that is asked about.
var farAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// phaseFor is the longest time that the record's phase may take by its policy. p is nil where the policy is gone.
func (r *Record) phaseFor(p *Policy) time.Duration {
	switch {
	case r.Phase == Pending:
		return PendingFor
	case r.Back != nil:
		return BackFor
	case r.Phase == Acting && Registry[r.Step.Name].Once:
		return ActingFor
	case r.Phase == Acting && p != nil && r.Step.Index < len(p.Plan) && p.Plan[r.Step.Index].Name == r.Step.Name:
		return p.Plan[r.Step.Index].Timeout
	case r.Phase == Acting:
		return time.Hour
	}
	return p.waitOf(r.Step)
}

// flight is when a disruptive record that is in flight occupies the fleet though the ledger has no slot for it. Each repair
// takes its slot before its intent, so such a record is one whose slot a person took out of the ledger, or one that Drydock
// never wrote: it counts for as long as its step may take, and not at all where its policy does not enforce.
func (c *Config) flight(n *corev1.Node, r *Record) (from, until time.Time) {
	return r.flight(c.PolicyOf(r.Policy, n))
}

func (r *Record) flight(p *Policy) (from, until time.Time) {
	if p != nil && p.Mode != ModeEnforce {
		return time.Time{}, time.Time{}
	}
	return r.Intent.At, Earlier(r.Deadline, r.Intent.At.Add(ActingFor+r.phaseFor(p))).Add(OverdueFor)
}

func inFlightAt(from, until, now time.Time) bool {
	return !from.After(now.Add(ahead)) && now.Before(until)
}
