// Package sidecar probes gated sidecars, and approves the ones that wait.
//
// A gated sidecar keeps its pod's main container from starting until the sidecar is approved. Its
// gate is in the memory of its process: a replaced pod, or a restarted sidecar, waits again, and
// for ever. Options say which pods have such a sidecar, and how to probe and approve it; only the
// reading of a SeiNode is specific to one product.
//
// Look reports the state and changes nothing; Approve looks once more and then sends the approval,
// once. A closed gate can be deliberate, so everything that is not certainly a fault is held. That
// includes a SeiNode that cannot be read, a field of an unexpected type, and an answer that is
// neither of the two.
//
// What always holds, with the test that guards it:
//
//   - Only one answer means that the gate is closed; everything else shows nothing
//     (TestS0_2EveryAnswerIsWhatItIs, TestS0_3AHangIsNotAnAnswer).
//   - An approval leaves only after a look that allows it, for the same pod on the same node, and
//     after the caller's last check (TestS0_1To4OnlyA503OfARunningNodeIsApprovedAndOnlyOnce,
//     TestAPodThatWasReplacedIsNotApproved,
//     TestTheCallersLastWordComesAfterTheConnectionAndBeforeTheRequest).
//   - Every hold of the upstream controller holds here, and so does a state that cannot be read
//     (TestS0_16EveryHoldHolds, TestS0_5ImageDriftAndPlansAreTheControllersOwn,
//     TestWhatCannotBeReadHolds).
//   - A URL is made only of the address of a selected pod and of the configuration; redirects are
//     not followed (TestOnlySelectedPodsAreContacted, TestAnAddressOfNoPodIsNotContacted,
//     TestARedirectIsNotFollowed).
//   - Answers are bounded, and texts are one short line without control characters
//     (TestAnswersAreBounded, FuzzAnswerText).
//   - The token is sent only with the approval, and is in no text
//     (TestTheTokenLeavesWithTheApprovalAlone, TestNoTextHasTheToken).
//   - A *refusedError means that certainly nothing was approved; any other error means perhaps
//     (TestOnlyCertainOutcomesAreReported).
package sidecar
