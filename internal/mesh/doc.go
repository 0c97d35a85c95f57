// Package mesh is the part of drydock-agent that knows Kilo's mesh and probes other nodes through
// it.
//
//	Nodes ─────────┐                             ┌─► probe.Client ─► another node's agent
//	               ├─► Topology ─► Targets ─► Prober
//	EndpointSlices ┘                             └─► the results: drydock_mesh_probe_success
//
// In each round, an agent probes the leader and one member of every other location, and the leader
// and three siblings of its own location. The members and siblings change from round to round. So
// all are probed in turn, and the work of an agent grows with the number of locations, not of
// nodes.
//
// What always holds, with the test that guards it:
//
//   - If a location has n members, an agent probes each of them within n rounds. It takes more
//     rounds only if there are more than 32 locations (TestEveryMemberIsAskedInTurn). The number of
//     probes in a round depends only on the number of locations, and has a maximum
//     (TestARoundIsBoundedByLocations).
//   - Each pair of nodes has one result for each protocol, and its labels have the nodes' current
//     roles (TestAResultHasTheCurrentRoles). A result expires after three rounds
//     (TestAWordIsForgottenAfterThreeRounds).
//   - An inconclusive probe gives no result, and never counts as a failure
//     (TestNoResultIsNotAFailure). If the probe over TCP is inconclusive, missing answers over UDP
//     are inconclusive, too (TestSilenceOverUDPGivesNoResultWithoutTCP).
//   - Without the API server the agent continues with the last state, and reports the age of that
//     state (TestProbingContinuesWithoutTheAPIServer).
package mesh
