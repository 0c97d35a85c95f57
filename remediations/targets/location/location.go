// Package location decides about the locations of the mesh as targets of repairs, each through the
// node that leads it. It has the observation of a location, the nodes that can lead it instead, and
// how moves of its leadership are proven or undone. It is pure, like the core.
package location

import (
	"errors"
	"time"

	"drydock.dev/drydock/remediations"
)

// Observation is what Drydock observed of a location. It is always read from the live system, and
// never from an alert.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Leader is the node that leads the location by Kilo's rule. It is empty if there is no leader or
	// the leader is unknown.
	Leader string
	// Held is why the leadership of the location must not be moved. Unknown is why the location's
	// state is unknown. Unheard is the text that Unknown would have if Held were empty. Each is empty
	// if it does not apply.
	Held, Unknown, Unheard string
	// Misconfigured means that Held is a mistake in the nodes' configuration that a person must
	// correct. If it is false, a non-empty Held means that no other node can become leader.
	Misconfigured bool
	// Candidates are the nodes that could lead instead, the best first, with the changes that each
	// needs. Refused has, by the name of each other node, why it cannot lead.
	Candidates []remediations.Move
	Refused    map[string]string
	// Settled means that the leader has an address in the mesh, and no other node of the location has
	// one.
	Settled bool
	// Reached means that the location's members answer probes from other locations. If it is false,
	// ReachedWhy says what is missing.
	Reached    bool
	ReachedWhy string
}

// Kind is the target kind of the mesh's locations. Each location is repaired through the node that
// leads it.
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
