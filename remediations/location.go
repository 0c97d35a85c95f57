package remediations

import (
	"errors"
	"time"
)

// LocationSight is what was seen of a location: live, and never out of an alert.
type LocationSight struct {
	// At is when looking began.
	At time.Time
	// Leader is who leads by Kilo's rule; empty: nobody, or it cannot be said.
	Leader string
	// Held says why no move may be made there; Unknown why nothing can be said.
	Held, Unknown string
	// Candidates are the nodes that could lead instead, the best first, with what would have to change. Refused says of the
	// others why not.
	Candidates []Move
	Refused    map[string]string
	// Settled says that the leader has an address in the mesh, and no other node of the location has one.
	Settled bool
	// Reached says that the location's members answer probes from other locations; ReachedWhy what is missing.
	Reached    bool
	ReachedWhy string
}

// LocationKind are the locations of the mesh, by the nodes that lead them.
var LocationKind = TargetKind{
	Kind: KindLocation,
	Name: func(p *Policy, labels map[string]string) (string, error) {
		if len(p.Labels) != 1 || !ValidLocation(labels[p.Labels[0]]) {
			return "", errors.New("the alert names no location")
		}
		return labels[p.Labels[0]], nil
	},
}
