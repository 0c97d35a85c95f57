package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// cancelsMost is the largest number of cancelled repairs that the ledger stores for one machine. It
// removes the oldest first.
const cancelsMost = 16

// cancelSeenApart is the shortest time between two updates of End.Seen. A longer time saves writes
// of the ledger.
const cancelSeenApart = 12 * time.Hour

// End is an event that holds the next repair of a machine for some time. One kind is the end of a
// policy's last repair, because of the policy's cooldown. The other kind is that a person cancelled
// the repair of an alert. The Node's annotations show both, but others can delete these
// annotations.
type End struct {
	Repair  string               `json:"repair"`
	Policy  string               `json:"policy"`
	At      time.Time            `json:"at"`
	Outcome remediations.Outcome `json:"outcome,omitempty"`
	// Restarted means that a step of the repair restarted the machine.
	Restarted bool `json:"restarted,omitempty"`
	// Alert is the fingerprint of the alert whose repair a person cancelled. It is empty for the
	// end of a repair. Seen is when that alert was last on the Node.
	Alert string    `json:"alert,omitempty"`
	Seen  time.Time `json:"seen,omitzero"`
	// UID is the UID of the Node if it has no spec.providerID, and otherwise empty.
	UID string `json:"uid,omitempty"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// EndOf returns the End for a history entry. ok is false if the entry is not about a node's repair,
// if that repair took no step, or after a person's reset.
func EndOf(c *remediations.Config, e remediations.Entry) (end End, ok bool) {
	if remediations.KindOf(e.Target) != remediations.KindNode || len(e.Steps) == 0 || e.Reset {
		return End{}, false
	}
	return End{Repair: e.ID, Policy: e.Policy, At: e.Ended, Outcome: e.Outcome, Restarted: e.Restarted(c)}, true
}

// CancelOf returns the End that records that a person cancelled the alert's repair.
func CancelOf(a remediations.Alert, by remediations.CancelledRepair, now time.Time) End {
	return End{Repair: by.ID, Policy: a.Policy, At: by.At, Alert: a.Fingerprint, Seen: remediations.Instant(now)}
}

// replaces reports whether the ledger stores e in place of o. It does so for two ends of repairs by
// one policy, and for two cancels of the repair for one alert.
func (e End) replaces(o End) bool {
	return e.Alert == o.Alert && (e.Alert != "" || e.Policy == o.Policy)
}

// of reports whether e is about the machine of Node n. e is stored under the Node's name, because
// its Node had no spec.providerID. A later Node with the same name and without a spec.providerID
// may be the same machine. So e also counts for that Node, if e is younger than window.
func (e End) of(n *corev1.Node, now time.Time, window time.Duration) bool {
	return e.UID == string(n.UID) || n.Spec.ProviderID == "" && now.Sub(e.At) < window
}

// EndsOf returns the ends of repairs of the Node's machine, and the cancelled repairs of its
// alerts. window is for End.of.
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

// CancelKnown returns the ledger's last End that a person made by cancelling a repair for this
// alert on the Node's machine. It returns nil if there is none. window is for End.of.
func (l *Ledger) CancelKnown(n *corev1.Node, alert string, now time.Time, window time.Duration) (last *End) {
	for _, e := range l.EndsOf(n, now, window) {
		if e.Alert == alert && alert != "" && (last == nil || e.At.After(last.At)) {
			last = &e
		}
	}
	return last
}

// Lacks reports whether the ledger must be written because e is missing or newer than its entry.
func (l *Ledger) Lacks(c *remediations.Config, n *corev1.Node, e End, now time.Time) bool {
	if remediations.FromTheFuture(e.At, now) || now.Sub(e.since()) >= e.keptFor(c) {
		return false
	}
	others := 0 // the cancels of other alerts; above cancelsMost, two cancels would replace each other in every write
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

// Found adds an End that the Node shows and the ledger lacks, and reports whether the ledger must
// be written. room is how many bytes may still be added, and is reduced by the size of a new End.
// An End that replaces an earlier End needs no room. If room is too small, Found adds nothing, and
// only the Node has the End.
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

// Ended stores e in place of an earlier End. It stores nothing if e is so old that no decision
// depends on it.
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

// Uncancel removes the Ends of this alert that a person made by cancelling a repair. It reports
// whether the ledger had any.
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

// since returns the time at which keptFor begins to count: when the alert of a cancelled repair was
// last on the Node, or when the repair ended.
func (e End) since() time.Time {
	if e.Alert != "" {
		return e.Seen
	}
	return e.At
}

// keptFor returns how long the ledger keeps the End. The end of a repair stays as long as a
// cooldown or the wait after a restart may depend on it. A cancelled repair stays until its alert
// has been off the Node for limits.repairsWindow, and at least for a day.
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

// PruneEnds removes the Ends that no decision needs any more. The caller must first decide about
// all Nodes, because that renews End.Seen. Without this, after a long downtime of Drydock a
// cancelled repair may look old although its alert is still on the Node.
func (l *Ledger) PruneEnds(c *remediations.Config, now time.Time) {
	for machine, ends := range l.Ends {
		l.setEnds(machine, slices.DeleteFunc(slices.Clone(ends), func(e End) bool { return now.Sub(e.since()) >= e.keptFor(c) }))
	}
}

// rebuildEnds adds the Ends of one Node to a ledger that Rebuild creates.
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
