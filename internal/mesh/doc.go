// Package mesh is the agent's view of Kilo's mesh, and its rounds of probes through it.
//
//	Nodes ─────────┐                             ┌─► probe.Client ─► another node's agent
//	               ├─► Topology ─► Targets ─► Prober
//	EndpointSlices ┘                             └─► the words: drydock_mesh_probe_success
//
// Each round, an agent probes the leader of every other location and one of its members, and the
// leader of its own location and three siblings. The member and the siblings change from round to
// round. So all are probed in turn, and the work of a node grows with the number of locations, not
// of nodes.
//
// What always holds, with the test that guards it:
//
//   - Every member is probed within as many rounds as there are members
//     (TestEveryMemberIsAskedInTurn). The number of locations and constants bound the probes of a
//     round (TestARoundIsBoundedByLocations).
//   - Each pair and protocol has one result, under the current roles
//     (TestAResultHasTheCurrentRoles). A result expires after three rounds
//     (TestAWordIsForgottenAfterThreeRounds).
//   - A probe that shows nothing gives no result, never a failure (TestNoResultIsNotAFailure). The
//     result over TCP decides whether silence over UDP counts
//     (TestSilenceOverUDPGivesNoResultWithoutTCP).
//   - Without the API server the agent continues with the last state, and reports its age
//     (TestProbingContinuesWithoutTheAPIServer).
package mesh
