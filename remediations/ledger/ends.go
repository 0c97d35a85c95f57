package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// cancelsMost bounds the cancels that the ledger stores for one machine. The oldest is forgotten
// first.
const cancelsMost = 16

// cancelSeenApart is how much time passes before the ledger records again that the alert of a
// cancel is still on the Node.
const cancelSeenApart = 12 * time.Hour

// End is what holds the next repair of a machine after one has ended: the end of the policy's last
// repair, for its cooldown, or a person's cancel of an alert's repair. The Node has the same in its
// history and on its alerts, but others can delete those.
type End struct {
	Repair  string               `json:"repair"`
	Policy  string               `json:"policy"`
	At      time.Time            `json:"at"`
	Outcome remediations.Outcome `json:"outcome,omitempty"`
	// Restarted: a step of the repair restarted the machine.
	Restarted bool `json:"restarted,omitempty"`
	// Alert is the fingerprint of the alert whose repair a person cancelled; empty: this is not a
	// cancel. Seen is when that alert was last on the Node.
	Alert string    `json:"alert,omitempty"`
	Seen  time.Time `json:"seen,omitzero"`
	// UID is the UID of the Node, if the Node has no spec.providerID.
	UID string `json:"uid,omitempty"`
	// Unknown are fields that a newer Drydock wrote.
	Unknown Unknown `json:"-"`
}

// EndOf returns the end of a node's repair that took a step, from its entry. ok is false for all
// other entries.
func EndOf(c *remediations.Config, e remediations.Entry) (end End, ok bool) {
	if remediations.KindOf(e.Target) != remediations.KindNode || len(e.Steps) == 0 || e.Reset {
		return End{}, false
	}
	return End{Repair: e.ID, Policy: e.Policy, At: e.Ended, Outcome: e.Outcome, Restarted: e.Restarted(c)}, true
}

// CancelOf returns a person's cancel of the repair of that alert.
func CancelOf(a remediations.Alert, by remediations.CancelledRepair, now time.Time) End {
	return End{Repair: by.ID, Policy: a.Policy, At: by.At, Alert: a.Fingerprint, Seen: remediations.Instant(now)}
}

// replaces reports whether the ledger keeps only one of the two: the ends of one policy's repairs,
// or the cancels of one alert's.
func (e End) replaces(o End) bool {
	return e.Alert == o.Alert && (e.Alert != "" || e.Policy == o.Policy)
}

// of reports whether the entry, stored under the Node's name, is about the Node's machine. Without
// a spec.providerID, another Node of that name may be the same machine, so the entry counts for the
// window.
func (e End) of(n *corev1.Node, now time.Time, window time.Duration) bool {
	return e.UID == string(n.UID) || n.Spec.ProviderID == "" && now.Sub(e.At) < window
}

// EndsOf returns the ends of repairs of the Node's machine, and the cancels of its alerts.
func (l *Ledger) EndsOf(n *corev1.Node, now time.Time, window time.Duration) (ends []End) {
	if l == nil {
		return nil
	}
	ends = slices.Clone(l.Ends[n.Spec.ProviderID])
	for _, e := range l.Ends[n.Name] {
		if e.UID != "" && e.of(n, now, window) {
			ends = append(ends, e)
		}
	}
	return ends
}

// CancelKnown returns the ledger's cancel of the alert's repair for the Node's machine; nil: none.
func (l *Ledger) CancelKnown(n *corev1.Node, alert string, now time.Time, window time.Duration) (last *End) {
	for _, e := range l.EndsOf(n, now, window) {
		if e.Alert == alert && alert != "" && (last == nil || e.At.After(last.At)) {
			last = &e
		}
	}
	return last
}

// Lacks reports whether the ledger must be written so that it has the end or the cancel.
func (l *Ledger) Lacks(c *remediations.Config, n *corev1.Node, e End, now time.Time) bool {
	if remediations.FromTheFuture(e.At, now) || now.Sub(e.since()) >= e.keptFor(c) {
		return false
	}
	others := 0 // cancels of other alerts: without room, two that replace each other would be written for ever
	for _, o := range l.EndsOf(n, now, 0) {
		switch {
		case !e.replaces(o) && o.Alert != "":
			others++
		case e.replaces(o) && !o.At.Before(e.At) && e.Seen.Sub(o.Seen) < cancelSeenApart:
			return false
		}
	}
	return e.Alert == "" || others < cancelsMost
}

// Found records an end or a cancel of the Node that the ledger lacks. It replaces an earlier one,
// or takes a part of the room. If there is no room, only the Node has it. Found reports whether the
// ledger must be written.
func (l *Ledger) Found(c *remediations.Config, n *corev1.Node, e End, room *int, now time.Time) bool {
	if !l.Lacks(c, n, e, now) {
		return false
	}
	if !slices.ContainsFunc(l.Ends[Machine(n)], e.replaces) {
		size := len(remediations.EncodeJSON(map[string]End{Machine(n): e}))
		if size > *room {
			return false
		}
		*room -= size
	}
	l.Ended(c, n, e, now)
	return true
}

// Ended records the end or the cancel in place of an earlier one, if something may still depend on
// it.
func (l *Ledger) Ended(c *remediations.Config, n *corev1.Node, e End, now time.Time) {
	if now.Sub(e.since()) >= e.keptFor(c) {
		return
	}
	machine := Machine(n)
	e.UID = ""
	if n.Spec.ProviderID == "" {
		e.UID = string(n.UID)
	}
	kept := slices.DeleteFunc(slices.Clone(l.Ends[machine]), func(o End) bool {
		replaced := e.replaces(o) && !o.At.After(e.At)
		if replaced && e.Repair == o.Repair {
			e.Unknown = o.Unknown
		}
		return replaced
	})
	l.setEnds(machine, append(kept, e))
}

// Uncancel forgets that a person cancelled a repair of the alert. It reports whether the ledger had
// the cancel.
func (l *Ledger) Uncancel(n *corev1.Node, alert string) (changed bool) {
	for _, machine := range []string{n.Spec.ProviderID, n.Name} {
		before := l.Ends[machine]
		kept := slices.DeleteFunc(slices.Clone(before), func(e End) bool { return e.Alert == alert && alert != "" })
		if len(kept) != len(before) {
			l.setEnds(machine, kept)
			changed = true
		}
	}
	return changed
}

func (l *Ledger) setEnds(machine string, ends []End) {
	cancels := 0
	for _, e := range ends {
		if e.Alert != "" {
			cancels++
		}
	}
	ends = slices.DeleteFunc(ends, func(e End) bool { // the oldest come first
		if e.Alert == "" || cancels <= cancelsMost {
			return false
		}
		cancels--
		return true
	})
	if l.Ends == nil {
		l.Ends = map[string][]End{}
	}
	if l.Ends[machine] = ends; len(ends) == 0 {
		delete(l.Ends, machine)
	}
}

// since returns the start of the time that keptFor returns.
func (e End) since() time.Time {
	if e.Alert != "" {
		return e.Seen
	}
	return e.At
}

// keptFor returns how long the ledger keeps the entry. It keeps an end for as long as any cooldown
// and any wait may depend on it. It keeps a cancel until its alert has been off the Node for
// limits.repairsWindow, or for a day.
func (e End) keptFor(c *remediations.Config) time.Duration {
	if e.Alert != "" {
		return max(c.Limits.RepairsWindow, remediations.PendingFor)
	}
	longest := time.Duration(0)
	for _, p := range c.Policies {
		longest = max(longest, p.Cooldown)
		for _, step := range p.Plan {
			if e.Restarted {
				longest = max(longest, step.Wait)
			}
		}
	}
	return longest
}

// PruneEnds forgets the entries that nothing depends on. The caller has decided about all Nodes
// before: Drydock may have been away for longer than it keeps a cancel, while the alert is still on
// its Node.
func (l *Ledger) PruneEnds(c *remediations.Config, now time.Time) {
	for machine, ends := range l.Ends {
		l.setEnds(machine, slices.DeleteFunc(slices.Clone(ends), func(e End) bool { return now.Sub(e.since()) >= e.keptFor(c) }))
	}
}

// rebuildEnds is the part of Rebuild about ended repairs.
func (l *Ledger) rebuildEnds(c *remediations.Config, n *corev1.Node, j remediations.Journal, now time.Time) {
	for _, e := range slices.Backward(j.History) {
		if end, ok := EndOf(c, e); ok {
			l.Ended(c, n, end, now)
		}
	}
	for _, a := range j.Alerts {
		if by := j.Cancelled(&a); by != nil {
			l.Ended(c, n, CancelOf(a, *by, now), now)
		}
	}
}
