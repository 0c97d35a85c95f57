// Package location is what is true of the locations of the mesh alone, as targets of repairs, each by the node that leads it: what is
// seen of one, who can lead it instead, and how moves of its leadership are proven or put back. It is pure, as the core is.
package location

import (
	"errors"
	"time"

	"drydock.dev/drydock/remediations"
)

// Observation is what was seen of a location: live, and never out of an alert.
type Observation struct {
	// At is when looking began.
	At time.Time
	// Leader is who leads by Kilo's rule; empty: nobody, or it cannot be said.
	Leader string
	// Held says why no move may be made there; Unknown why nothing can be said. Unheard is what Unknown would be without Held.
	Held, Unknown, Unheard string
	// Misconfigured says that Held names what a person must correct first; else Held says only that nobody could lead instead.
	Misconfigured bool
	// Candidates are the nodes that could lead instead, the best first, with what would have to change. Refused says of the
	// others why not.
	Candidates []remediations.Move
	Refused    map[string]string
	// Settled says that the leader has an address in the mesh, and no other node of the location has one.
	Settled bool
	// Reached says that the location's members answer probes from other locations; ReachedWhy what is missing.
	Reached    bool
	ReachedWhy string
}

// Kind are the locations of the mesh, by the nodes that lead them.
var Kind = remediations.TargetKind{
	Kind: remediations.KindLocation, Unknown: remediations.MisrouteUnknownLocation, Called: "a location of the mesh", Selects: "leaders of the mesh",
	NotAsked: "the policy is about the leaders of the mesh, which are only moved for an alert",
	Name: func(p *remediations.Policy, labels map[string]string) (string, error) {
		if len(p.Labels) != 1 || !remediations.ValidLocation(labels[p.Labels[0]]) {
			return "", errors.New("the alert names no location")
		}
		return labels[p.Labels[0]], nil
	},
}
