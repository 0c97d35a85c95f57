package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/announce"
)

// All returns the attempts of the repair and of those that it continues, oldest first.
func (r *Record) All() Attempts {
	if r.After == nil {
		return r.Done
	}
	return slices.Concat(r.After.Steps, r.Done)
}

// Ended returns the history's entry for a repair that has ended. The target's kind adds its own
// fields.
func (r *Record) Ended(o Outcome, why string, now time.Time) *Entry {
	return &Entry{
		ID: r.ID, Policy: r.Policy, Outcome: o, Steps: append(Attempts{}, r.Done...), Began: r.Began, Ended: Instant(now),
		Cause: r.Cause.Alert, Why: clip(why, 300),
	}
}

// Exhausted returns the record of a plan without further steps. It stays until a person resets the
// node.
func (r *Record) Exhausted(now time.Time) *Record {
	c := r.Clone()
	c.Phase, c.Since, c.Deadline, c.Hold, c.Note = PhaseExhausted, Instant(now), time.Time{}, nil, ""
	c.NameIntent()
	return c
}

// Holds reports whether the record must be written with its hold: the phase has ended, or the hold
// is new and not fleet-wide. A fleet-wide hold is written only to replace a node's own hold that no
// longer applies and has no end: people would read it as the present. In a storm most records have
// a hold with an end, and need no write.
func (r *Record) Holds(pending *Record, hold *Hold, fleetwide bool) bool {
	if r != nil && r.Phase != pending.Phase {
		return true
	}
	if fleetwide {
		if r == nil || r.ID != pending.ID || r.Hold == nil {
			return false
		}
		// The provider's trouble now concerns all machines, so the next process must not continue
		// the count of this machine's.
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

// Between returns the record between two attempts.
func (r *Record) Between(now time.Time) *Record {
	next := r.Clone()
	if r.Phase != PhasePending {
		next.Phase, next.Since, next.Deadline, next.Note = PhasePending, Instant(now), Instant(now.Add(PendingFor)), ""
	}
	return next
}

// Words returns what the record says about why nothing is done.
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

// LastDone returns the attempt that was issued last. That is Step if the intent is for Step; while
// Pending, Step already names the next attempt. An earlier version did not record repeatable steps.
func LastDone(r *Record) Attempt {
	if len(r.Done) == 0 || r.Intent.Of(r, r.Step) {
		return r.Step.Issued()
	}
	return r.Done[len(r.Done)-1]
}

// Tried reports whether the step was already passed over.
func (r *Record) Tried(ref StepRef) bool {
	return slices.ContainsFunc(r.Passed, func(p Passed) bool { return p.Index == ref.Index && p.Name == ref.Name })
}

// Spent reports whether the plan is past the attempt, because the earlier repair that this one
// continues has issued it. A step that only prepares others is done again, because the node was in
// service in between.
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

// Observes reports whether the record is a would-be repair: nothing was done, and only the mode of
// its policy holds its first step. Such a record counts for as long as the step would.
func (r *Record) Observes() bool {
	return r != nil && r.Phase == PhasePending && r.Intent == nil && r.Hold != nil && r.Hold.Reason == ReasonObserving
}

// WithoutPolicy says why a repair without a configured policy waits for its end. The policy's
// witness shows a cure, and the cure counts once it has held for the policy's proofFor.
func (r *Record) WithoutPolicy() string {
	return fmt.Sprintf("policy %s is no longer configured, so nothing says what proves a cure", r.Policy)
}

// Beyond reports whether the record's phase would last longer than any phase can. A wrong clock
// wrote it, or Drydock did not write it.
func (r *Record) Beyond(now time.Time) bool { return FarAhead(r.Deadline, now) }

func (r *Record) FromTheFuture() string {
	return fmt.Sprintf("its step %s is recorded as issued at %s, and most nodes' leases agree that this time is far ahead: a clock was wrong, or Drydock did not write the record", r.Step, r.Intent.At.Format(time.RFC3339))
}

// announces returns the message of the Node condition, if the repair makes the condition true: from
// the first intent to the repair's end.
func (r *Record) announces(condition corev1.NodeConditionType) string {
	if r == nil || r.Intent == nil || r.Phase == PhaseExhausted {
		return ""
	}
	if condition != corev1.NodeMaintenanceInProgress && (r.Phase != PhaseActing || r.Step.Name != drain.Name) {
		return ""
	}
	return fmt.Sprintf("Drydock repairs this node: repair %s by policy %s, set at attempt %s (%s)", r.ID, r.Policy, r.Intent.ID, r.Step)
}

// Unannounced returns the configured announcements that neither the Node nor the record has.
// Drydock leaves alone what a person set, and does not set again what a person removed.
func (r *Record) Unannounced(c *Config, n *corev1.Node) (keys []string) {
	for _, key := range c.Announce {
		_, there := n.Annotations[key]
		if !there && !slices.ContainsFunc(r.Undo, func(u Undo) bool { return u.announces(key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Settled returns when those who read the repair's announcements have shown whether they chose the
// node before they could read them. written is the time of the write that set the keys of fresh.
// Zero: no reader needs time.
func (r *Record) Settled(n *corev1.Node, fresh []string, written time.Time) (at time.Time) {
	for _, u := range r.Undo {
		wait := announce.Settling(n, u.Key)
		if u.Kind != UndoAnnotation || wait == 0 {
			continue
		}
		since := u.At
		if slices.Contains(fresh, u.Key) {
			since = written // the API server may have been slow
		}
		if since.Add(wait).After(at) {
			at = since.Add(wait)
		}
	}
	return at
}

// announces reports whether the Undo is the announcement with the key.
func (u Undo) announces(key string) bool { return u.Kind == UndoAnnotation && u.Key == key }
