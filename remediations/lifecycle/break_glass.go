package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// BreakGlassFor is how long break-glass counts once it is set.
const BreakGlassFor = time.Hour

// BreakGlassExpired says that the hour is over.
func (s *State) BreakGlassExpired(now time.Time) bool {
	since := s.BreakGlassSince()
	return !since.IsZero() && !now.Before(since.Add(BreakGlassFor))
}

// BreakGlassSince is when the key was first seen; zero: not yet, or nobody knows.
func (s *State) BreakGlassSince() time.Time {
	if s.Ledger == nil {
		return time.Time{}
	}
	if g := s.Ledger.Status.Glass[s.Node.Name]; g.Why == BreakGlassWhy(s.Node) {
		return g.Since
	}
	return time.Time{}
}

// BreakGlassSet says whether a person set drydock.dev/break-glass on the node, whatever it says.
func BreakGlassSet(n *corev1.Node) bool {
	_, ok := n.Annotations[remediations.BreakGlassKey]
	return ok
}

// BreakGlassWhy is why the key was set, cut as the ledger keeps it.
func BreakGlassWhy(n *corev1.Node) string {
	return text.Line(n.Annotations[remediations.BreakGlassKey], 80)
}
