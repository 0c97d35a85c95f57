package fleet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// parked reports whether the repair waits while its node is out of service. Drydock cordoned and
// drained the node, and a guard holds the next step. Such a repair counts against the limits, so
// that no further node is drained in the meantime.
func parked(n *corev1.Node, r *remediations.Record) bool {
	return r.Phase == remediations.PhasePending && r.Drained() && n.Spec.Unschedulable &&
		slices.ContainsFunc(r.Undo, func(u remediations.Undo) bool { return u.Kind == remediations.UndoCordon })
}

// parkedUntil returns until when a parked repair counts against the limits. The phase Pending ends
// at its deadline, and lasts at most PendingFor. OverdueFor is added to that.
func parkedUntil(r *remediations.Record) time.Time {
	return remediations.Earlier(r.Deadline, r.Since.Add(remediations.PendingFor)).Add(remediations.OverdueFor)
}

// Parked reports whether the Node's repair is Pending, and counts against the limits now because
// the node is drained.
func Parked(n *corev1.Node, r *remediations.Record, now time.Time) bool {
	return parked(n, r) && now.Before(parkedUntil(r))
}

// Park is for a repair that has just become Pending. If its node is drained, the repair counts
// against the limits. Otherwise it no longer counts.
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

// beside reports whether the repair at p counts against a repair of the node other. A parked repair
// does not count if other is itself parked or under repair, because other is already out of
// service. Otherwise two parked nodes would wait for each other.
func (f *Fleet) beside(p place, other string) bool {
	own, has := f.occupied[other]
	return !p.parked || !has || own.wouldBe
}
