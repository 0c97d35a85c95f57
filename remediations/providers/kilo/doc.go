// Package kilo has Kilo choose another node to relay a location's traffic. How Kilo chooses is package election.
//
// A Mesh does so in a cluster. Look reads all Nodes live and asks Prometheus what Drydock's agents said of their probes;
// it says who leads, who could lead instead, whether Kilo has followed, and whether the location is reached. Its Move
// changes the leader's key on a few Nodes, one PATCH each, and its PutBack undoes that.
//
// What always holds, with the test that guards it:
//
//   - After each single write of a move, of one that broke off, and of the undoing of either, the old leader or the
//     successor leads: never nobody, never a third (TestAtNoPointOfAMoveOrOfItsUndoingDoesAThirdNodeLead).
//   - Only the leader's key is written, on Nodes that are as they were when it was decided
//     (TestAMoveChangesTheLeadersKeysAndNothingElse, TestAMoveThatIsNotWhatWasDecidedAnyMoreIsNotMade).
//   - What was done of a move is known or said to be unknown (TestAnAnswerThatIsLostIsNotAMoveThatWasNotMade); a put-back
//     touches nothing that others changed (TestAPutBackLeavesWhatSomebodyElseChanged).
//   - No data proposes nobody (TestNoDataIsUnknownAndProposesNobody, TestAPrometheusThatDoesNotAnswerRightIsNoDataAndNamed,
//     TestLeasesThatCannotBeReadAreNoData), nor does a location without power (TestASuccessorsKubeletStillRenewsItsLease).
//   - What suspects say, and that they are not reached, is nothing; a candidate's own sending is proven by whoever answers
//     (TestASuccessorPassesProbesToItsSiblings, TestOfThreeTheLastOneFollowsASuccessorThatWasBadAsWell).
//   - What is odd about the mesh is a hold that names it (TestBadInputIsAHoldThatNamesIt).
package kilo
