package ledger

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// cancelsMost bounds the cancelled repairs of one machine. The oldest is removed first.
const cancelsMost = 16

// cancelSeenApart saves writes of the ledger: it is the shortest time between two updates of
// End.Seen.
const cancelSeenApart = 12 * time.Hour

// End holds the next repair of a machine for some time: a policy's last repair ended and its
// cooldown runs, or a person cancelled the repair of an alert. The Node's annotations show both,
// but others can delete them.
type End struct {
	Repair  string               `json:"repair"`
	Policy  string               `json:"policy"`
	At      time.Time            `json:"at"`
	Outcome remediations.Outcome `json:"outcome,omitempty"`
	// Restarted means that the repair restarted the machine.
	Restarted bool `json:"restarted,omitempty"`
	// Alert is the alert whose repair a person cancelled, or empty. Seen is when it was last on the
	// Node.
	Alert string    `json:"alert,omitempty"`
	Seen  time.Time `json:"seen,omitzero"`
	// UID is empty if the Node has a spec.providerID.
	UID     string  `json:"uid,omitempty"`
	Unknown Unknown `json:"-"`
}

// EndOf returns false if the entry is not about a node's repair, if that took no step, or after a
// person's reset.
func EndOf(c *remediations.Config, e remediations.Entry) (end End, ok bool) {
	if remediations.KindOf(e.Target) != remediations.KindNode || len(e.Steps) == 0 || e.Reset {
		return End{}, false
	}
	return End{Repair: e.ID, Policy: e.Policy, At: e.Ended, Outcome: e.Outcome, Restarted: e.Restarted(c)}, true
}

// CancelOf returns the End of a repair that a person cancelled.
func CancelOf(a remediations.Alert, by remediations.CancelledRepair, now time.Time) End {
	return End{Repair: by.ID, Policy: a.Policy, At: by.At, Alert: a.Fingerprint, Seen: remediations.Instant(now)}
}

// replaces is true for two ends by one policy, and for two cancels for one alert.
func (e End) replaces(o End) bool {
	return e.Alert == o.Alert && (e.Alert != "" || e.Policy == o.Policy)
}

// of reports whether e, stored under the Node's name, is about its machine. Without a
// spec.providerID, a later Node with the same name may be the same machine. So e counts for it
// while e is younger than window.
func (e End) of(n *corev1.Node, now time.Time, window time.Duration) bool {
	return e.UID == string(n.UID) || n.Spec.ProviderID == "" && now.Sub(e.At) < window
}

// EndsOf returns what holds the next repair of the Node's machine. window is for End.of.
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

// CancelKnown returns the last cancel of a repair for this alert on the machine, or nil. window is
// for End.of.
func (l *Ledger) CancelKnown(n *corev1.Node, alert string, now time.Time, window time.Duration) (last *End) {
	for _, e := range l.EndsOf(n, now, window) {
		if e.Alert == alert && alert != "" && (last == nil || e.At.After(last.At)) {
			last = &e
		}
	}
	return last
}

// Lacks reports whether e is missing in the ledger, or newer than its entry.
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
// be written. It reduces room by the bytes of a new End. If room is too small, it adds nothing, and
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

// Ended stores e, unless it is so old that no decision depends on it.
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

// Uncancel removes the cancels of repairs for this alert, and reports whether there were any.
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

// since is when keptFor begins to count.
func (e End) since() time.Time {
	if e.Alert != "" {
		return e.Seen
	}
	return e.At
}

// keptFor is as long as a cooldown or the wait after a restart may need the End. A cancel stays
// until its alert has been off the Node for limits.repairsWindow, and at least for a day.
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

// PruneEnds removes what no decision needs any more. The caller must first decide about all Nodes,
// because that renews End.Seen: after a long downtime of Drydock, a cancel may look old although
// its alert is still on the Node.
func (l *Ledger) PruneEnds(c *remediations.Config, now time.Time) {
	for machine, ends := range l.Ends {
		l.setEnds(machine, slices.DeleteFunc(slices.Clone(ends), func(e End) bool { return now.Sub(e.since()) >= e.keptFor(c) }))
	}
}

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
