// Package kilo makes Kilo choose another node to relay a location's traffic. That node is the
// location's leader. Package election has Kilo's rule for the choice.
//
// The type Mesh has three methods for this. Look reads all Nodes from the API server, and queries
// Prometheus for the probe results of Drydock's agents. It reports which node leads, which nodes
// could lead instead, whether Kilo has adopted the leader, and whether other locations reach the
// location. Move changes Kilo's leader annotation on a few Nodes, one PATCH each. PutBack undoes a
// move.
//
// What always holds, with the test that guards it:
//
//   - After each single write the old leader or the successor leads, and never a third node. This
//     is also true for a move that stops halfway, and for PutBack after it
//     (TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead).
//   - Only the leader annotation is written, and only on Nodes that have not changed since the
//     decision (TestAMoveChangesTheLeadersKeysAndNothingElse,
//     TestAMoveThatIsNotWhatWasDecidedAnyMoreIsNotMade).
//   - After a move, Drydock knows what the move changed, or reports that this is unknown
//     (TestAnAnswerThatIsLostIsNotAMoveThatWasNotMade). PutBack does not touch annotations that
//     others have changed (TestARestoreLeavesWhatOthersChanged).
//   - Without data no node is proposed as the next leader
//     (TestMissingDataIsUnknownAndProposesNoLeader,
//     TestAPrometheusWithABadAnswerIsNamedAndGivesNoData, TestUnreadableLeasesGiveNoData).
//     A node whose kubelet no longer renews its lease is not proposed either
//     (TestASuccessorsKubeletStillRenewsItsLease).
//   - A suspect is the leader or a node under repair. Probes by suspects, and failed probes of
//     suspects, do not count. If any node, even a suspect, answers a candidate's probe, the
//     candidate counts as able to send (TestASuccessorPassesProbesToItsSiblings,
//     TestOfThreeTheLastOneFollowsASuccessorThatWasBadAsWell).
//   - A wrong configuration of the mesh forbids moves, and the reason names it
//     (TestBadInputIsAHoldThatNamesIt).
package kilo
