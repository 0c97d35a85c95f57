// Package mesh is the agent's view of a mesh that Kilo keeps, and its rounds of probes through it.
//
//	Nodes ─────────┐                             ┌─► probe.Client ─► another node's agent
//	               ├─► Topology ─► Targets ─► Prober
//	EndpointSlices ┘                             └─► the words: drydock_mesh_probe_success
//
// Each round an agent asks the leader of every other location and one member of it, the leader of its own location and
// three siblings. Which member and which siblings changes from round to round, so that all are asked in turn while the
// work of a node grows with the number of locations, not with that of nodes.
//
// What always holds, with the test that guards it:
//
//   - Every member is asked within as many rounds as there are members (TestEveryMemberIsAskedInTurn), and a round asks
//     no more than locations and constants allow (TestARoundIsBoundedByLocations).
//   - There is one word on a pair and a protocol, under the roles of now (TestAWordBearsTheRolesOfNow), and none that is
//     older than three rounds (TestAWordIsForgottenAfterThreeRounds).
//   - Nothing learnt is no word, never a bad one (TestNoWordIsNotABadWord), and what is learnt over TCP decides whether
//     silence over UDP is one (TestSilenceOverUDPIsNoWordWhereTCPLearntNothing).
//   - Without the API server the agent goes on with what it knew, and says how old that is
//     (TestProbingGoesOnWithoutTheAPIServer).
package mesh
