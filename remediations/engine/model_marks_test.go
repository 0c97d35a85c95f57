package engine

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// These are dated marks of other tools. Their owner removes them, or forgets to.
const (
	kuredReboots  = "weave.works/kured-reboot-in-progress"
	notNeeded     = "DeletionCandidateOfClusterAutoscaler"
	marksBelieved = time.Hour
)

// marksOf are the ways other tools put a date on a Node.
var marksOf = map[string]func(n *corev1.Node, at time.Time){
	"kured": func(n *corev1.Node, at time.Time) { n.Annotations[kuredReboots] = at.UTC().Format(time.RFC3339) },
	"cluster-autoscaler": func(n *corev1.Node, at time.Time) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: notNeeded, Value: strconv.FormatInt(at.Unix(), 10)})
	},
	"a taint's own date": func(n *corev1.Node, at time.Time) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: notNeeded, Value: "soon", TimeAdded: &metav1.Time{Time: at}})
	},
}

// mark puts a dated mark on the Node and removes the previous one.
func (w *world) mark(name, by string, at time.Time) {
	w.edit(name, func(n *corev1.Node) {
		unmark(n)
		marksOf[by](n, at)
	})
}

func unmark(n *corev1.Node) {
	delete(n.Annotations, kuredReboots)
	n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == notNeeded })
}

// dateOfMark returns the date of the mark on the Node. It is zero if the Node has no mark.
func dateOfMark(n *corev1.Node) time.Time {
	if at, err := time.Parse(time.RFC3339, n.Annotations[kuredReboots]); err == nil {
		return at
	}
	for _, t := range n.Spec.Taints {
		switch s, err := strconv.ParseInt(t.Value, 10, 64); {
		case t.Key != notNeeded:
		case err == nil:
			return time.Unix(s, 0)
		case t.TimeAdded != nil:
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// overdueMark reports whether the mark's date is plausible and its time has passed. A date before
// the Node's creation, or in the future, comes from a wrong clock.
func overdueMark(n *corev1.Node) bool {
	at := dateOfMark(n)
	return !at.Before(n.CreationTimestamp.Time) && !time.Now().Before(at.Add(marksBelieved))
}

// checkMarked: a dated mark must hold the repair for its time, and no longer.
func (w *world) checkMarked(cur *corev1.Node, next *remediations.Record) {
	if at := dateOfMark(cur); !at.IsZero() && !overdueMark(cur) {
		w.fail("NodeLeaving: %s begins on %s, which another tool has marked at %s", next.ID, cur.Name, at)
	}
}

// marksNode is another tool that dates its mark, forgets it or removes it.
func (w *world) marksNode(t *rapid.T) {
	name, by := pick(t), rapid.SampledFrom([]string{"nobody", "kured", "cluster-autoscaler", "a taint's own date"}).Draw(t, "by")
	ago := rapid.SampledFrom([]time.Duration{0, 40 * time.Minute, 59 * time.Minute, 72 * time.Hour, -time.Hour}).Draw(t, "ago")
	if by == "nobody" {
		w.edit(name, unmark)
		return
	}
	w.mark(name, by, time.Now().Add(-ago))
}
