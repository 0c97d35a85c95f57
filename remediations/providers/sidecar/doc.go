// Package sidecar asks gated sidecars how they are, and approves the ones that wait.
//
// A gated sidecar keeps its pod's main container from starting until somebody approves it. Its gate is in the memory of
// its process: a pod that was replaced, or a sidecar that was restarted, waits again, and for ever. Which pods have such a
// sidecar, and how it is asked and approved, are Options; nothing but the reading of a SeiNode is about one product.
//
// Look says what is to be seen and changes nothing; Approve looks once more and then asks for the approval, once. A closed
// gate can be deliberate, so everything that is not certainly a fault is held: a SeiNode that cannot be read, a field of
// an unexpected type, an answer that is neither of the two.
//
// What always holds, with the test that guards it:
//
//   - One answer alone says that the gate is closed; everything else is no data
//     (TestS0_2EveryAnswerIsWhatItIs, TestS0_3AHangIsNotAnAnswer).
//   - An approval leaves only after a look that allows it, for the same pod on the same node, and after the caller's last
//     word (TestS0_1To4OnlyA503OfARunningNodeIsApprovedAndOnlyOnce, TestAPodThatWasReplacedIsNotApproved,
//     TestTheCallersLastWordComesAfterTheConnectionAndBeforeTheRequest).
//   - Whatever upstream calls a hold holds, and so does what cannot be read (TestS0_16EveryHoldHolds,
//     TestS0_5ImageDriftAndPlansAreTheControllersOwn, TestWhatCannotBeReadHolds).
//   - A URL is made of the address of a selected pod and of the configuration, of nothing else; redirects are not followed
//     (TestOnlySelectedPodsAreContacted, TestAnAddressThatIsNoPodsIsNotContacted, TestARedirectIsNotFollowed).
//   - Answers are bounded, and texts are one short line without control characters (TestAnswersAreBounded,
//     FuzzAnswerText).
//   - The token leaves with the approval alone, and is in no text (TestTheTokenLeavesWithTheApprovalAlone,
//     TestNoTextHasTheToken).
//   - A *refusedError means that nothing was approved, certainly; any other error means perhaps
//     (TestWhatIsCertainIsSaidAndWhatIsNotIsNot).
package sidecar
