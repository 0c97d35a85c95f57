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

// Observation is what Drydock last observed of a mesh location. It always comes from the live
// system, and never from an alert.
type Observation struct {
	// At is when the observation began.
	At time.Time
	// Leader is the name of the node that leads the location by Kilo's rule. It is empty if there
	// is no leader or if the leader is unknown.
	Leader string
	// Held is why the leadership must not be moved, or empty. Unknown is why the state of the
	// location is unknown, or empty. If both apply, only Held is set, and Unheard has the reason of
	// Unknown.
	Held, Unknown, Unheard string
	// Misconfigured means that Held is about a mistake in the nodes' configuration, which a person
	// must correct. If it is false, a non-empty Held means that no other node can become leader.
	Misconfigured bool
	// Candidates has the nodes that could become the leader, the best first, each with the changes
	// that the move needs. Refused has the reasons why the other nodes cannot become the leader, by
	// the node's name.
	Candidates []remediations.Move
	Refused    map[string]string
	// Settled means that only one node of the location, the leader, has an address in the mesh.
	Settled bool
	// Reached means that the location's members (its other nodes) answer probes from other
	// locations. If it is false, ReachedWhy is what is missing.
	Reached    bool
	ReachedWhy string
}

// Kind is the kind of target for mesh locations. Drydock repairs a location through the node that
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
