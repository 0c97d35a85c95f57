package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// All are the attempts issued by the repair and by those that it went on from, oldest first.
func (r *Record) All() Attempts {
	if r.After == nil {
		return r.Done
	}
	return slices.Concat(r.After.Steps, r.Done)
}

// Ended is the history's entry of a repair that is over; its kind adds what is its own.
func (r *Record) Ended(o Outcome, why string, now time.Time) *Entry {
	return &Entry{
		ID: r.ID, Policy: r.Policy, Outcome: o, Steps: append(Attempts{}, r.Done...), Began: r.Began, Ended: Instant(now),
		Cause: r.Cause.Alert, Why: clip(why, 300),
	}
}

// Exhausted is the record of a plan that has run out, which stays until a person has looked.
func (r *Record) Exhausted(now time.Time) *Record {
	c := r.Clone()
	c.Phase, c.Since, c.Deadline, c.Hold, c.Note = PhaseExhausted, Instant(now), time.Time{}, nil, ""
	c.NameIntent()
	return c
}

// Holds says that the record must say by which guard it is held: its phase is over, or that is news and not all repairs' alike. What
// is alike is written where the record names a guard of its own, which holds it no more, and no time at which that ends: nobody may
// read it as the present. In a storm most records have such a time, and are left alone.
func (r *Record) Holds(pending *Record, hold *Hold, fleetwide bool) bool {
	if r != nil && r.Phase != pending.Phase {
		return true
	}
	if fleetwide {
		if r == nil || r.ID != pending.ID || r.Hold == nil {
			return false
		}
		// The provider says of all machines what the record says of this one: the next process must not count on from there.
		if (r.Hold.Alone || r.Alone > pending.Alone) && (hold.Reason == ReasonProviderUnreachable || hold.Reason == ReasonProviderAbsent) {
			return true
		}
		return r.Hold.Until == nil && !r.Hold.Reason.Fleetwide() && r.Hold.Reason != hold.Reason
	}
	if hold.Reason == ReasonAwaitingApproval && r != nil && r.Plan != pending.Plan {
		return true // what is approved must be on record
	}
	return r == nil || r.ID != pending.ID || !r.Hold.same(hold)
}

// Between is the record between two attempts.
func (r *Record) Between(now time.Time) *Record {
	next := r.Clone()
	if r.Phase != PhasePending {
		next.Phase, next.Since, next.Deadline, next.Note = PhasePending, Instant(now), Instant(now.Add(PendingFor)), ""
	}
	return next
}

// Words are what the record says of why nothing is done.
func (h *Hold) Words() string {
	if h == nil {
		return "no reason on record"
	}
	return h.Message
}

func (h *Hold) same(o *Hold) bool {
	if h == nil || o == nil {
		return h == o
	}
	untilSame := (h.Until == nil) == (o.Until == nil) && (h.Until == nil || h.Until.Equal(*o.Until))
	return h.Reason == o.Reason && h.Alone == o.Alone && untilSame
}

// LastDone is the attempt that was issued last: that of the intent, where Step still names it; while
// Pending, Step already names the next one. An earlier version did not write down a step that its plan repeats.
func LastDone(r *Record) Attempt {
	if len(r.Done) == 0 || r.Intent.Of(r, r.Step) {
		return r.Step.Issued()
	}
	return r.Done[len(r.Done)-1]
}

// Tried says that the step was passed over already.
func (r *Record) Tried(ref StepRef) bool {
	return slices.ContainsFunc(r.Passed, func(p Passed) bool { return p.Index == ref.Index && p.Name == ref.Name })
}

// Spent says that the plan is past the attempt: an earlier repair, from which this one goes on, has issued it. A step that
// only prepares others is done again: the node was given back in between.
func (r *Record) Spent(c *Config, p *Policy, ref StepRef) bool {
	a := r.After
	if a == nil || !c.Remediation(ref.Name).Once {
		return false
	}
	if _, there := p.StepAt(a.Step); !there {
		return false // the plan has become another one
	}
	return ref.Index < a.Step.Index || (ref.Index == a.Step.Index && ref.Attempt <= a.Step.Attempt)
}

// Observes says that the record is a would-be repair: nothing was done, and nothing but the mode of its policy keeps its first
// step back. From then on it takes the place that the step would take, for as long as the step would.
func (r *Record) Observes() bool {
	return r != nil && r.Phase == PhasePending && r.Intent == nil && r.Hold != nil && r.Hold.Reason == ReasonObserving
}

// WithoutPolicy says why a repair whose policy is no longer configured waits for its end: a cure shows by the policy's witness,
// and counts once it has held for the policy's proofFor.
func (r *Record) WithoutPolicy() string {
	return fmt.Sprintf("policy %s is no longer configured, so nothing says what proves a cure", r.Policy)
}

// Beyond says that the record's phase would last for longer than any does: a clock was wrong when it was written, or Drydock
// did not write it.
func (r *Record) Beyond(now time.Time) bool { return FarAhead(r.Deadline, now) }

func (r *Record) FromTheFuture() string {
	return fmt.Sprintf("its step %s is recorded as issued at %s, and most nodes' leases agree that this time is far ahead: a clock was wrong, or Drydock did not write the record", r.Step, r.Intent.At.Format(time.RFC3339))
}

// announces is the message of the Node condition by the repair, where it is true of the node: from the first intent to the repair's end.
func (r *Record) announces(condition corev1.NodeConditionType) string {
	if r == nil || r.Intent == nil || r.Phase == PhaseExhausted {
		return ""
	}
	if condition != corev1.NodeMaintenanceInProgress && (r.Phase != PhaseActing || r.Step.Name != drain.Name) {
		return ""
	}
	return fmt.Sprintf("Drydock repairs this node: repair %s by policy %s, set at attempt %s (%s)", r.ID, r.Policy, r.Intent.ID, r.Step)
}

// Unannounced are those of the configured announcements that are not on the Node, and that the record does not have: what a person set
// is left alone, and what a person took off is not set again.
func (r *Record) Unannounced(c *Config, n *corev1.Node) (keys []string) {
	for _, key := range c.Announce {
		_, there := n.Annotations[key]
		if !there && !slices.ContainsFunc(r.Undo, func(u Undo) bool { return u.announces(key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// announces says that what is to be undone is the announcement with the key.
func (u Undo) announces(key string) bool { return u.Kind == UndoAnnotation && u.Key == key }
