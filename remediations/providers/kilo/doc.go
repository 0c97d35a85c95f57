// Package kilo makes Kilo choose another node to relay a location's traffic. Package election has
// Kilo's rule for the choice.
//
// A Mesh does so in a cluster. Look reads all Nodes live and queries Prometheus for the probe
// results of Drydock's agents. It reports who leads, who could lead instead, whether Kilo has
// followed, and whether the location is reached. Move changes the leader's key on a few Nodes, one
// PATCH each, and PutBack undoes that.
//
// What always holds, with the test that guards it:
//
//   - After each single write the old leader or the successor leads, and never a third node. This
//     includes moves that broke off, and the undoing of either
//     (TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead).
//   - Only the leader's key is written, on Nodes that are as they were at the decision
//     (TestAMoveChangesTheLeadersKeysAndNothingElse,
//     TestAMoveThatIsNotWhatWasDecidedAnyMoreIsNotMade).
//   - What a move changed is known or reported as unknown
//     (TestAnAnswerThatIsLostIsNotAMoveThatWasNotMade); a put-back touches nothing that others
//     changed (TestARestoreLeavesWhatOthersChanged).
//   - Without data no candidate is proposed (TestMissingDataIsUnknownAndProposesNoLeader,
//     TestAPrometheusWithABadAnswerIsNamedAndGivesNoData, TestUnreadableLeasesGiveNoData),
//     and none in a location without power (TestASuccessorsKubeletStillRenewsItsLease).
//   - The results of suspects, and failures to reach suspects, do not count. Any node that answers
//     a candidate's probe proves the candidate's own sending
//     (TestASuccessorPassesProbesToItsSiblings,
//     TestOfThreeTheLastOneFollowsASuccessorThatWasBadAsWell).
//   - A fault of the mesh itself is a hold that names the fault (TestBadInputIsAHoldThatNamesIt).
package kilo
