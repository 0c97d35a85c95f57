// Package kilo makes Kilo choose another node to relay a location's traffic. That node is the
// location's leader. Package election has Kilo's rule for the choice.
//
// The type Mesh has three methods for this. Look reads all Nodes live and queries Prometheus for
// the probe results of Drydock's agents. It reports who leads, who could lead instead, whether Kilo
// has adopted the leader, and whether other locations reach the location. Move changes Kilo's
// leader annotation on a few Nodes, one PATCH each. PutBack undoes a move.
//
// What always holds, with the test that guards it:
//
//   - After each single write the old leader or the successor leads, and never a third node. This
//     is also true for a move that stops halfway, and for PutBack after it
//     (TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead).
//   - Only the leader annotation is written, and only on Nodes that have not changed since the
//     decision (TestAMoveChangesTheLeadersKeysAndNothingElse,
//     TestAMoveThatIsNotWhatWasDecidedAnyMoreIsNotMade).
//   - What a move changed is known or reported as unknown
//     (TestAnAnswerThatIsLostIsNotAMoveThatWasNotMade). PutBack does not touch annotations that
//     others have changed (TestARestoreLeavesWhatOthersChanged).
//   - Without data no node is proposed as the next leader
//     (TestMissingDataIsUnknownAndProposesNoLeader,
//     TestAPrometheusWithABadAnswerIsNamedAndGivesNoData, TestUnreadableLeasesGiveNoData).
//     A node whose kubelet no longer renews its lease is not proposed either
//     (TestASuccessorsKubeletStillRenewsItsLease).
//   - A suspect is the leader or a node under repair. Probes by suspects, and failed probes of
//     suspects, do not count. A candidate can send if any node, even a suspect, answers its probe
//     (TestASuccessorPassesProbesToItsSiblings,
//     TestOfThreeTheLastOneFollowsASuccessorThatWasBadAsWell).
//   - A wrong configuration of the mesh forbids moves, and the reason names it
//     (TestBadInputIsAHoldThatNamesIt).
package kilo
