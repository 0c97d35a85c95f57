// Package location decides how to repair the locations of a Kilo mesh. One node of each location is
// its leader: all traffic to other locations goes through that node. The repair moves the
// leadership to another node. The package has the observation of a location, the choice of the next
// leader, and how moves are proven or undone. It is pure: it uses no client and no clock of its
// own.
package location

import (
	"errors"
	"time"

	"drydock.dev/drydock/remediations"
)

// Observation is what was last observed of a mesh location. It comes from the live system, never
// from an alert.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Leader leads the location by Kilo's rule. It is empty if there is none or if it is unknown.
	Leader string
	// Held is why the leadership must not be moved. Unknown is why the state is unknown. If both
	// apply, only Held is set, and Unheard has the reason of Unknown.
	Held, Unknown, Unheard string
	// Misconfigured means that a person must correct the nodes' configuration. Otherwise Held means
	// that no other node can lead.
	Misconfigured bool
	// Candidates could lead, the best first, each with the changes that the move needs. Refused has
	// why the other nodes cannot, by name.
	Candidates []remediations.Move
	Refused    map[string]string
	// Settled means that only the leader has an address in the mesh.
	Settled bool
	// Reached means that the location's other nodes answer probes from other locations. If it is
	// false, ReachedWhy is what is missing.
	Reached    bool
	ReachedWhy string
}

// Kind is the kind of target for mesh locations. A location is repaired through the node that leads
// it.
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
