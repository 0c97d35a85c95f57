package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// BreakGlassFor is how long break-glass holds after it was set.
const BreakGlassFor = time.Hour

// BreakGlassExpired reports whether that time has ended.
func (s *State) BreakGlassExpired(now time.Time) bool {
	since := s.BreakGlassSince()
	return !since.IsZero() && !now.Before(since.Add(BreakGlassFor))
}

// BreakGlassSince returns when Drydock first saw the annotation; zero: not yet, or unknown.
func (s *State) BreakGlassSince() time.Time {
	if s.Ledger == nil {
		return time.Time{}
	}
	if g := s.Ledger.Status.BreakGlass[s.Node.Name]; g.Why == BreakGlassWhy(s.Node) {
		return g.Since
	}
	return time.Time{}
}

// BreakGlassSet reports whether a person set drydock.dev/break-glass on the node, with any value.
func BreakGlassSet(n *corev1.Node) bool {
	_, ok := n.Annotations[remediations.BreakGlassKey]
	return ok
}

// BreakGlassWhy returns the reason in the annotation, shortened as the ledger stores it.
func BreakGlassWhy(n *corev1.Node) string {
	return text.Line(n.Annotations[remediations.BreakGlassKey], 80)
}
