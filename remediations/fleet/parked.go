package fleet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// parked reports whether a guard holds the next step of a drained node. Such a repair counts
// against the limits, so that no further node is drained in the meantime.
func parked(n *corev1.Node, r *remediations.Record) bool {
	return r.Phase == remediations.PhasePending && r.Drained() && n.Spec.Unschedulable &&
		slices.ContainsFunc(r.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
}

// parkedUntil bounds how long a drained node counts.
func parkedUntil(r *remediations.Record) time.Time {
	return remediations.Earlier(r.Deadline, r.Since.Add(remediations.PendingFor)).Add(remediations.OverdueFor)
}

// Parked reports whether the repair waits while its node is drained, and counts now.
func Parked(n *corev1.Node, r *remediations.Record, now time.Time) bool {
	return parked(n, r) && now.Before(parkedUntil(r))
}

// Park is for a repair that has just become Pending. It counts only if its node is drained.
func (f *Fleet) Park(c *remediations.Config, n *corev1.Node, r *remediations.Record) {
	if !parked(n, r) {
		f.Vacate(n.Name)
		return
	}
	f.Occupy(c, n, f.roster.providerOfRecord(r, n), false)
	p := f.occupied[n.Name].begun(r)
	p.parked = true
	f.occupied[n.Name] = p
}

// beside reports whether the repair at p counts against a repair of other. A drained node does not
// count if other is itself drained or under repair: two such nodes would otherwise wait for each
// other.
func (f *Fleet) beside(p place, other string) bool {
	own, has := f.occupied[other]
	return !p.parked || !has || own.wouldBe
}
