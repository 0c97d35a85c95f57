package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// BreakGlassFor is how long a person's annotation drydock.dev/break-glass stops repairs.
const BreakGlassFor = time.Hour

// BreakGlassExpired reports whether break-glass was set on the node at least BreakGlassFor ago.
func (s *State) BreakGlassExpired(now time.Time) bool {
	since := s.BreakGlassSince()
	return !since.IsZero() && !now.Before(since.Add(BreakGlassFor))
}

// BreakGlassSince returns when Drydock first saw the annotation, or zero if that is unknown.
func (s *State) BreakGlassSince() time.Time {
	if s.Ledger == nil {
		return time.Time{}
	}
	if g := s.Ledger.Status.BreakGlass[s.Node.Name]; g.Why == BreakGlassWhy(s.Node) {
		return g.Since
	}
	return time.Time{}
}

// BreakGlassSet reports whether the node has drydock.dev/break-glass, with any value.
func BreakGlassSet(n *corev1.Node) bool {
	_, ok := n.Annotations[remediations.BreakGlassKey]
	return ok
}

// BreakGlassWhy returns the annotation's reason, shortened to the length that the ledger stores.
func BreakGlassWhy(n *corev1.Node) string {
	return text.Line(n.Annotations[remediations.BreakGlassKey], 80)
}
