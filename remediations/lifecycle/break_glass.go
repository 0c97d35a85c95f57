package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// GlassFor is how long a broken glass stays broken.
const GlassFor = time.Hour

// GlassMended says that the hour is over.
func (s *State) GlassMended(now time.Time) bool {
	since := s.GlassSince()
	return !since.IsZero() && !now.Before(since.Add(GlassFor))
}

// GlassSince is when the glass was first seen broken; zero: not yet, or nobody knows.
func (s *State) GlassSince() time.Time {
	if s.Ledger == nil {
		return time.Time{}
	}
	if g := s.Ledger.Status.Glass[s.Node.Name]; g.Why == GlassWhy(s.Node) {
		return g.Since
	}
	return time.Time{}
}

// GlassBroken says whether a person set drydock.dev/break-glass on the node, whatever it says.
func GlassBroken(n *corev1.Node) bool { _, ok := n.Annotations[remediations.BreakGlassKey]; return ok }

// GlassWhy is why the node's glass was broken, cut as the ledger keeps it.
func GlassWhy(n *corev1.Node) string { return text.Line(n.Annotations[remediations.BreakGlassKey], 80) }
