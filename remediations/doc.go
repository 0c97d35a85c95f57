// Package remediations is the core of Drydock: policies and the record on the Node. Package ledger fences what is done and
// remembers it; package fleet counts all nodes, with their breakers; package lifecycle has the guards and the one lifecycle, by which the Decide of each kind of target below
// targets/ says what is to be done now. All four are pure: they know no client, no clock and no network, and the same state and
// time give the same decision. Package engine carries the decisions out.
//
// # The life of a repair
//
//	an alert that a policy takes, or a person's request
//	          |
//	          v
//	       Pending <---------------------------------+
//	     held by a guard, or between two attempts    |
//	     deadline: 24 h, then Cancelled              |
//	          |         |                            |
//	          |         +--> dropped: the alert is   |
//	          |              over before anything    |
//	          |              was done                |
//	          | no guard holds: slot in the ledger,  |
//	          | intent on the Node, then the call    |
//	          v                                      |
//	       Acting                                    |
//	     the call is under way                       |
//	     deadline: 1 min, then nobody knows          |
//	          |                                      |
//	          | the call's outcome                   |
//	          v                                      |
//	      Verifying ------- no proof in time: -------+
//	     waiting for the    the next attempt, the next
//	     step's own proof   step, through all guards
//	     deadline: the step's wait
//	          |
//	          +--> Recovered      the step's own proof held for proofFor
//	          +--> SelfRecovered  well for as long, but not by the step
//	          |                   Both become Relapsed if the alert is back within the
//	          |                   policy's relapseWindow: the next repair goes on with the plan
//	          +--> Exhausted      the plan ran out: stays on record, and the node
//	          |                   cordoned, until a person's reset
//	          +--> Cancelled      by a person; or the policy is gone or its plan was edited, or
//	          |                   Pending for a day
//	          +--> Superseded     the Node was deleted under its repair, or another machine has its name; or another one leads
//	                              the location by now; or its own alert is over, and another
//	                              policy repairs the node
//	          +--> Observed       out of Pending, where the policy only observes: nothing was done
//
// A mesh leader's repair that has moved, and of which nothing more can be tried though its cure is not proven, is not Pending
// for a day but for 15 min and proofFor, and then Exhausted, with the leadership left as it is.
//
// Acting and Verifying are in flight: they hold a slot in the ledger, and the webhook keeps people from the node. No
// phase but Exhausted outlives its deadline.
//
// # What must always hold
//
// Each with the tests that guard it. Over all of them stand TestWhateverHappens, which drives a model world through
// random histories and checks them at every write and every call, and TestEachClauseIsNeeded, which takes their clauses
// away one by one and requires that the check fails then.
//
//  1. In observe mode nothing changes but Drydock's own keys, ledger, events and metrics:
//     TestObserveModeSpeaksAndDoesNothing, TestWouldBeRepairsCountInObserveModeOnly. What was only observed holds no repair:
//     TestObservedRepairsLeaveEvidence, TestWhatWasObservedHoldsNoRepair, TestWhatWasObservedForgetsNothingThatWasDone.
//  2. One repair in flight on a node; a node's repair and a sidecar's on it exclude each other: TestTwoEnginesAtOnce,
//     TestOtherTargetsOfTheNode, TestSidecarAndItsNodeExcludeEachOther, TestLeaderAndItsNodesExcludeEachOther.
//  3. Disruptive repairs in flight never exceed a limit, and none begins while its breaker is open:
//     TestFleetNeverExceedsALimit, TestLimitsCountTheHigherOfLedgerAndNodes, TestControlPlaneKeepsItsQuorum,
//     TestOneNodeAtATime, TestStorms, TestEndOfTheTrialDecidesAboutTheBreaker. Nor are leaders of the mesh moved beyond
//     theirs: TestLeadershipMovesOnlyWhereEverythingSaysSo, TestLedgerRemembersMovesAcrossRestarts.
//  4. An attempt reaches the provider at most once, after its intent is durable and within ten seconds of it:
//     TestCrashAtEveryStep, TestLeaderThatSleptAfterItsIntentCallsNobody,
//     TestIntentWhoseWriteHadNoAnswerIsNotCalled, TestLastLookBeforeTheCall, TestLastLookBeforeTheApproval,
//     TestLastLookBeforeTheMove, TestKnownTaskIsSilentlyIgnored, FuzzDecide; with no API server,
//     TestRescueThatDiesAtEveryStep, TestMachineThatDiesAtEveryStep, TestTornAtEveryByte. A drain goes on where it was,
//     and ends with its leader: TestDrainOfALeaderThatIsNoMore, TestDrainOfANodeThatIsGone.
//  5. No side effect for an alert that no Alertmanager confirmed in the last thirty seconds:
//     TestWhatTheAlertmanagersTogetherSay, TestAlertThatIsNotSentAgainIsNotBelieved,
//     TestAlertsThatComeTwiceLateOrOutOfOrder, TestDrainEndsWithinAPass, TestPostAloneIsNoReason,
//     TestLastLookAsksTheWitness, TestEveryShippedPolicyAboutNodesHasAWitness, TestGPUNodeIsNeverReplaced,
//     TestAlertCountsOnlyWhereItIsRoutedToDrydock, TestAlertThatIsRoutedElsewhereDoesNothing, TestForCountsFromWhenDrydockFirstSawTheAlert.
//  6. No data is never a fault: TestNoDataIsNoFault, TestBlindness, TestLeasesThatBlameTheControlPath,
//     TestASampleHardlyEverMissesStaleLeases, TestClockThatIsWrongCallsNobody, TestDrainOfWhichNothingCanBeDecided,
//     TestOnly503IsActedUpon, TestUnknownIsNeverFailing, TestOneBadNodeNeverChangesTheWholeCluster.
//  7. Recovered needs the step's own proof, held for proofFor, and no phase outlives its deadline:
//     TestDeathOfTheAlertSourceIsNoCure, TestNodeThatARebootCuresIsRecovered, TestDecideGoldens,
//     TestDecideLeaderGoldens,
//     TestRelapseGoesOnWithThePlan, TestMachineThatNoRebootCuresIsReplaced, TestNodeRegisteredAgainIsNoReplacement, TestReplacementThatNeverComes,
//     TestAReplacementEndsWithoutAMachineWhereNoneIsNeeded, TestAProviderThatPromisesAMachineMustBringOne.
//  8. What Drydock did is on the record, and undone by Drydock alone, where it is still its own; a record, and all that follows from it,
//     is of one machine: TestRecordOfAnotherMachineIsSuperseded, TestCancelOnTheNewNodeKeepsTheReplacementOfTheOld,
//     TestCordonOfAPersonSurvivesAReset, TestNodeThatNothingCuresIsCordonedAndLeftToAPerson,
//     TestOutOfServiceOnlyWhereTheMachineIsGone, TestLeadershipMovesOnlyWhereEverythingSaysSo.
//  9. A person's word wins, also in mid-repair: TestPersonsWord, TestSilenceBetweenTwoAttemptsHoldsTheSecond,
//     TestLastLookBeforeTheCall, TestApprovedRepairBegins, TestCancelledRepairStaysCancelled, TestCancelOutlivesTheHistory,
//     TestACancelHoldsWithoutTheNodesKeys, TestRequestedRebootNeedsNoAlert, TestBrokenGlassIsMendedAfterAnHour, TestAdmissionTable,
//     TestSomebodyUncordonsInMidDrain, TestSomebodyCancelsInMidDrain, TestPauseBetweenIntentAndApprovalStopsIt,
//     TestPeopleBetweenTwoHosts, TestPauseInTheLastMoment.
//  10. A name from an alert is used only where it equals an existing object's: TestRoute, TestValidNodeName.
//  11. Everything that arrives is bounded: TestAdmitKeepsTheNodeBounded, TestHistoryIsBounded,
//     TestHistoryRemembersTenOfEachKind, TestLongestRecordIsReadable, TestJournalIsBounded, TestLongUseKeepsItShort,
//     TestLedgerFitsInAConfigMap, TestAFullLedgerForgetsOldCuresAndTheRepairBegins.
//
// The API servers are a target of their own, which package rescue repairs with a journal that no API server keeps, and with guards of its
// own. Over it stand TestWhatARescueMayDo, TestWhateverHappensToTheControlPlane and
// TestEachClauseOfARescueIsNeeded.
//
// The guards stand in the order of the design (TestGuardsStandInTheOrderOfTheDesign), each speaks before those behind it
// (TestEachGuardSpeaksBeforeThoseBehindIt), and none is idle (TestNoGuardIsIdle).
package remediations
