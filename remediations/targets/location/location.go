// Package location decides about the locations of the mesh as targets of repairs, each through the
// node that leads it: the observation of a location, the nodes that can lead it instead, and how
// moves of its leadership are proven or undone. It is pure, like the core.
package location

import (
	"errors"
	"time"

	"drydock.dev/drydock/remediations"
)

// Observation is what Drydock observed of a location. It is always live, and never taken from an
// alert.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Leader is the leader by Kilo's rule; empty: no leader, or it is unknown.
	Leader string
	// Held is why the leadership of the location must not be moved. Unknown is why the state is
	// unknown. Unheard is what Unknown would be without Held.
	Held, Unknown, Unheard string
	// Misconfigured is true if Held is a mistake in the nodes' configuration that a person must
	// correct. If it is false and Held is not empty, Held says that no other node can become
	// leader.
	Misconfigured bool
	// Candidates are the nodes that could lead instead, the best first, with the changes that each
	// needs. Refused has the reason why each other node cannot lead.
	Candidates []remediations.Move
	Refused    map[string]string
	// Settled: the leader has an address in the mesh, and no other node of the location has one.
	Settled bool
	// Reached: the location's members answer probes from other locations. ReachedWhy is what is
	// missing for that.
	Reached    bool
	ReachedWhy string
}

// Kind is the kind of the mesh's locations, each identified by the node that leads it.
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
