package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/announce"
)

// All returns the attempts of the repair and of the earlier repair that it continues, oldest first.
func (r *Record) All() Attempts {
	if r.After == nil {
		return r.Done
	}
	return slices.Concat(r.After.Steps, r.Done)
}

// Ended returns the history's entry for a repair that ends now. The caller adds the fields of the
// target's kind.
func (r *Record) Ended(o Outcome, why string, now time.Time) *Entry {
	return &Entry{
		ID: r.ID, Policy: r.Policy, Outcome: o, Steps: append(Attempts{}, r.Done...), Began: r.Began, Ended: Instant(now),
		Cause: r.Cause.Alert, Why: clip(why, 300),
	}
}

// Exhausted returns the record after the plan's last step has failed. It stays on the Node until a
// person resets the node, or until the node has been well for the policy's EndWhenWell.
func (r *Record) Exhausted(now time.Time) *Record {
	c := r.Clone()
	c.Phase, c.Since, c.Deadline, c.Hold, c.Note = PhaseExhausted, Instant(now), time.Time{}, nil, ""
	c.NameIntent()
	return c
}

// Holds reports whether pending, with the hold, must replace the record r on the Node. A fleet-wide
// hold is usually not written, because a thousand nodes may have it at the same time. It is written
// over another hold without an end, because people would take that one for the present one.
func (r *Record) Holds(pending *Record, hold *Hold, fleetwide bool) bool {
	if r != nil && r.Phase != pending.Phase {
		return true
	}
	if fleetwide {
		if r == nil || r.ID != pending.ID || r.Hold == nil {
			return false
		}
		// The trouble now concerns all machines. If the record still said otherwise, the next
		// leader would continue the count of this machine's failures.
		if (r.Hold.Alone || r.Alone > pending.Alone) && (hold.Reason == ReasonProviderUnreachable || hold.Reason == ReasonProviderAbsent) {
			return true
		}
		return r.Hold.Until == nil && !r.Hold.Reason.Fleetwide() && r.Hold.Reason != hold.Reason
	}
	if hold.Reason == ReasonAwaitingApproval && r != nil && r.Plan != pending.Plan {
		return true // the plan that a person approves must be on record
	}
	return r == nil || r.ID != pending.ID || !r.Hold.same(hold)
}

// Between returns the record in the phase Pending, for the time between two attempts.
func (r *Record) Between(now time.Time) *Record {
	next := r.Clone()
	if r.Phase != PhasePending {
		next.Phase, next.Since, next.Deadline, next.Note = PhasePending, Instant(now), Instant(now.Add(PendingFor)), ""
	}
	return next
}

// Words returns the message of the hold. h may be nil.
func (h *Hold) Words() string {
	if h == nil {
		return "no reason on record"
	}
	return h.Message
}

// same ignores the messages.
func (h *Hold) same(o *Hold) bool {
	if h == nil || o == nil {
		return h == o
	}
	untilSame := (h.Until == nil) == (o.Until == nil) && (h.Until == nil || h.Until.Equal(*o.Until))
	return h.Reason == o.Reason && h.Alone == o.Alone && untilSame
}

// LastDone returns the attempt that was issued last. If Done is empty, it returns Step, because
// earlier versions did not add repeatable steps to Done.
func LastDone(r *Record) Attempt {
	if len(r.Done) == 0 || r.Intent.Of(r, r.Step) {
		return r.Step.Issued()
	}
	return r.Done[len(r.Done)-1]
}

// Tried reports whether the repair has left out this step of the plan (Record.Passed).
func (r *Record) Tried(ref StepRef) bool {
	return slices.ContainsFunc(r.Passed, func(p Passed) bool { return p.Index == ref.Index && p.Name == ref.Name })
}

// Spent reports whether the repair that r continues has already made this attempt or a later one.
// It returns false for a repeatable step, for example a drain: new pods may have come to the node.
func (r *Record) Spent(c *Config, p *Policy, ref StepRef) bool {
	a := r.After
	if a == nil || !c.Remediation(ref.Name).Once {
		return false
	}
	if _, there := p.StepAt(a.Step); !there {
		return false // the plan was edited
	}
	return ref.Index < a.Step.Index || (ref.Index == a.Step.Index && ref.Attempt <= a.Step.Attempt)
}

// Observes reports whether the repair exists only in observe mode. It counts against the limits
// until Config.WouldUntil, but only for other records in observe mode.
func (r *Record) Observes() bool {
	return r != nil && r.Phase == PhasePending && r.Intent == nil && r.Hold != nil && r.Hold.Reason == ReasonObserving
}

// WithoutPolicy returns the message for a repair whose policy is no longer configured. The signs to
// check and proofFor are in the policy, so no cure can be proven and the repair waits for its
// deadline.
func (r *Record) WithoutPolicy() string {
	return fmt.Sprintf("policy %s is no longer configured, so no cure can be proven", r.Policy)
}

// Beyond reports whether the deadline is later than any phase can last: a wrong clock wrote it, or
// Drydock did not write the record.
func (r *Record) Beyond(now time.Time) bool { return FarAhead(r.Deadline, now) }

// FromTheFuture returns the message for a record whose last step has a time in the future.
func (r *Record) FromTheFuture() string {
	return fmt.Sprintf("the record says that step %s was issued at %s, which is far in the future according to most nodes' leases: a clock was wrong, or Drydock did not write the record", r.Step, r.Intent.At.Format(time.RFC3339))
}

// NodeMaintenanceInProgress is true from the first intent to the end, other conditions only during
// a drain. "" means that the condition is not true.
func (r *Record) announces(condition corev1.NodeConditionType) string {
	if r == nil || r.Intent == nil || r.Phase == PhaseExhausted {
		return ""
	}
	if condition != corev1.NodeMaintenanceInProgress && (r.Phase != PhaseActing || r.Step.Name != drain.Name) {
		return ""
	}
	return fmt.Sprintf("Drydock repairs this node: repair %s by policy %s, set at attempt %s (%s)", r.ID, r.Policy, r.Intent.ID, r.Step)
}

// Unannounced returns the keys of Config.Announce that must still be set on the Node. A key that
// was set earlier in this repair is not returned: if it is missing now, a person has removed it.
func (r *Record) Unannounced(c *Config, n *corev1.Node) (keys []string) {
	for _, key := range c.Announce {
		_, there := n.Annotations[key]
		if !there && !slices.ContainsFunc(r.Undo, func(u Undo) bool { return u.announces(key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Settled returns the earliest time for the first call of an announced repair, or zero. Another
// system may have chosen the node just before the announcement, and shows this only some time
// later. fresh are the annotation keys that the last write set, at the time written.
func (r *Record) Settled(n *corev1.Node, fresh []string, written time.Time) (at time.Time) {
	for _, u := range r.Undo {
		wait := announce.Settling(n, u.Key)
		if u.Kind != UndoAnnotation || wait == 0 {
			continue
		}
		since := u.At
		if slices.Contains(fresh, u.Key) {
			since = written // later than u.At if the API server was slow
		}
		if since.Add(wait).After(at) {
			at = since.Add(wait)
		}
	}
	return at
}

func (u Undo) announces(key string) bool { return u.Kind == UndoAnnotation && u.Key == key }
