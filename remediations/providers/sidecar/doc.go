// Package sidecar probes gated sidecars, and approves those that wait for approval.
//
// A gated sidecar prevents its pod's main container from starting until the sidecar is approved. It
// keeps the approval only in memory. So after a restart of the sidecar, or in a new pod, the gate
// is closed until the sidecar is approved again. Options say which pods have such a sidecar, and
// how to probe and approve it. Only the code that reads a SeiNode is specific to one product.
//
// Look reports the state and changes nothing. Approve observes the state again, and then sends the
// approval once. A closed gate may be intended. So Drydock approves only if the gate is certainly
// closed by a fault. It approves nothing if a SeiNode cannot be read, or has a field of an
// unexpected type. It also approves nothing if a probe's answer is neither "ready" nor "not ready".
//
// What always holds, with the test that guards it:
//
//   - Only the configured "not ready" code means that the gate is closed. Any other answer proves
//     nothing (TestS0_2EveryAnswerIsWhatItIs, TestS0_3AHangIsNotAnAnswer).
//   - An approval is sent only after an observation that allows it, for the same pod on the same
//     node, and after the caller's last check
//     (TestS0_1To4OnlyA503OfARunningNodeIsApprovedAndOnlyOnce,
//     TestAPodThatWasReplacedIsNotApproved,
//     TestTheCallersLastWordComesAfterTheConnectionAndBeforeTheRequest).
//   - Drydock approves nothing while the SeiNode's controller would refuse it, or while the
//     SeiNode's state cannot be read (TestS0_16EveryHoldHolds,
//     TestS0_5ImageDriftAndPlansAreTheControllersOwn, TestWhatCannotBeReadHolds).
//   - A URL consists only of the address of a selected pod and of the configuration. Redirects are
//     not followed (TestOnlySelectedPodsAreContacted, TestAnAddressOfNoPodIsNotContacted,
//     TestARedirectIsNotFollowed).
//   - Answers are limited in size. Texts are one short line without control characters
//     (TestAnswersAreBounded, FuzzAnswerText).
//   - The token is sent only with the approval, and no text contains it
//     (TestTheTokenLeavesWithTheApprovalAlone, TestNoTextHasTheToken).
//   - A *refusedError means that certainly nothing was approved. After any other error the sidecar
//     may have been approved (TestOnlyCertainOutcomesAreReported).
package sidecar
