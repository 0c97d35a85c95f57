package remediations

import "time"

// promoteLeader gives the leadership of a location of the mesh to another of its nodes. Its proof is that the mesh is led
// by that node and its location answers again, which DecideLocation asks for.
var promoteLeader = Remediation{
	Name: "promote-leader", Verb: "move mesh leadership off", Disruptive: true, Once: true, Target: KindLocation, Wait: 3 * time.Minute, Attempts: 2, Invasive: 1,
}
