// Package remediations is the core of Drydock: the policies, and the record of a repair on its
// Node. The packages below it complete the core:
//
//   - Package ledger has the ledger, a ConfigMap. Each disruptive repair takes a slot in it: an
//     entry that counts against the limits. The ledger also remembers past repairs.
//   - Package fleet counts all nodes, for limits and breakers.
//   - Package lifecycle has the guards and the phases of a repair, for every kind of target.
//   - The packages below targets/ have the rules for one kind of target. Their function Decide
//     returns what to do about a target now.
//
// All of them are pure: they use no client, no clock and no network. The same state and time give
// the same decision. Package engine carries out the decisions.
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
//	          |         +--> dropped: the alert      |
//	          |              ended before Drydock    |
//	          |              did anything            |
//	          | no guard holds: slot in the ledger,  |
//	          | intent on the Node, then the call    |
//	          v                                      |
//	       Acting                                    |
//	     the call is under way                       |
//	     deadline: 1 min, then its outcome           |
//	     is unknown                                  |
//	          |                                      |
//	          | the call's outcome                   |
//	          v                                      |
//	      Verifying ------- no proof in time: -------+
//	     waiting for the    the next attempt or the next
//	     step's own proof   step, after all guards
//	     deadline: the step's wait
//	          |
//	          +--> Recovered      the step's own proof held for proofFor
//	          +--> SelfRecovered  the node was well for as long, but not because of the step
//	          |                   Both become Relapsed if the alert returns within the policy's
//	          |                   relapseWindow. The next repair then continues the plan
//	          +--> Exhausted      the plan has no more steps. The record stays until a person's
//	          |                   reset, or until the policy's endWhenWell. The node stays cordoned
//	          |                   if the policy has cordonExhausted
//	          +--> Cancelled      by a person; or the policy was removed, or its plan was edited; or
//	          |                   the repair was Pending for a day
//	          +--> Superseded     the Node was deleted during its repair, or another machine has its
//	          |                   name; or another node leads the location now; or the repair's own
//	          |                   alert has ended, and another policy repairs the node
//	          +--> Observed       from Pending, if the policy only observes: nothing was done
//
// One kind of Pending repair has a shorter deadline: the repair of a mesh leader that has moved the
// leadership, cannot prove its cure, and has nothing left to try. Its deadline is not a day, but 15
// min and proofFor. Then it is Exhausted, and the leadership stays where it is.
//
// Acting and Verifying are in flight. A disruptive repair in flight has a slot in the ledger, and
// the webhook denies changes of its node that would collide with it. Every phase except Exhausted
// ends by its deadline.
//
// # What must always hold
//
// Each rule names the tests that guard it. Two tests cover all of them. TestWhateverHappens drives
// a model world through random histories and checks the rules at every write and every call.
// TestEachClauseIsNeeded removes their clauses one by one, and requires that the check then fails.
//
//  1. In observe mode Drydock changes only its own keys, ledger, Events and metrics:
//     TestObserveModeSpeaksAndDoesNothing, TestWouldBeRepairsCountInObserveModeOnly. An observed
//     repair never holds a repair that acts: TestObservedRepairsLeaveEvidence,
//     TestWhatWasObservedHoldsNoRepair, TestWhatWasObservedForgetsNothingThatWasDone.
//  2. A node has one repair in flight. Repairs of a node and of a sidecar on it exclude each
//     other: TestTwoEnginesAtOnce, TestOtherTargetsOfTheNode,
//     TestSidecarAndItsNodeExcludeEachOther, TestLeaderAndItsNodesExcludeEachOther.
//  3. Disruptive repairs in flight never exceed a limit, and none begins while its breaker is
//     open: TestFleetNeverExceedsALimit, TestLimitsCountTheHigherOfLedgerAndNodes,
//     TestControlPlaneKeepsItsQuorum, TestOneNodeAtATime, TestStorms,
//     TestEndOfTheTrialDecidesAboutTheBreaker. Moves of mesh leaders never exceed their own
//     limit: TestLeadershipMovesOnlyWhereEverythingSaysSo,
//     TestLedgerRemembersMovesAcrossRestarts.
//  4. An attempt reaches the provider at most once, after its intent is durable and within ten
//     seconds of it: TestCrashAtEveryStep, TestLeaderThatSleptAfterItsIntentMakesNoCall,
//     TestIntentWhoseWriteHadNoAnswerIsNotCalled, TestLastLookBeforeTheCall,
//     TestLastLookBeforeTheApproval, TestLastLookBeforeTheMove, TestKnownTaskIsSilentlyIgnored,
//     FuzzDecide. Without an API server this holds, too: TestRescueThatDiesAtEveryStep,
//     TestMachineThatDiesAtEveryStep, TestTornAtEveryByte. A drain resumes where it was, and
//     stops with its leader: TestDrainOfALeaderThatIsNoMore, TestDrainOfANodeThatIsGone.
//  5. Drydock acts on an alert only if an Alertmanager confirmed the alert in the last thirty
//     seconds: TestWhatTheAlertmanagersTogetherSay, TestAlertThatIsNotSentAgainIsNotBelieved,
//     TestAlertsThatComeTwiceLateOrOutOfOrder, TestDrainEndsWithinAPass,
//     TestAPostAloneStartsNoRescue, TestLastLookAsksTheWitness,
//     TestEveryShippedPolicyAboutNodesHasAWitness, TestGPUNodeIsNeverReplaced,
//     TestAlertCountsOnlyWhereItIsRoutedToDrydock, TestAlertThatIsRoutedElsewhereDoesNothing,
//     TestForCountsFromWhenDrydockFirstSawTheAlert.
//  6. Missing data is never a fault: TestMissingDataCausesNoCall, TestBlindness,
//     TestLeasesThatBlameTheControlPath, TestASampleHardlyEverMissesStaleLeases,
//     TestLeaderWithAWrongClockMakesNoCall, TestDrainStopsWhileTheNodesCannotBeListed,
//     TestOnly503IsActedUpon, TestUnknownIsNeverFailing,
//     TestOneBadNodeNeverChangesTheWholeCluster.
//  7. Recovered needs the step's own proof, held for proofFor, and no phase outlives its
//     deadline: TestDeathOfTheAlertSourceDoesNotCountAsCure, TestNodeThatARebootCuresIsRecovered,
//     TestDecideGoldens, TestDecideLeaderGoldens, TestRelapseContinuesThePlan,
//     TestMachineThatNoRebootCuresIsReplaced, TestNodeRegisteredAgainDoesNotCountAsReplacement,
//     TestReplacementThatNeverComes, TestAReplacementThatNeedsNoNewMachineRecovers,
//     TestAProviderThatPromisesAMachineMustBringOne.
//  8. Drydock records what it did, and only Drydock undoes it, if it is still Drydock's own. A
//     record, and everything that depends on it, belongs to one machine:
//     TestRecordOfAnotherMachineIsSuperseded, TestCancelOnTheNewNodeKeepsTheReplacementOfTheOld,
//     TestCordonOfAPersonSurvivesAReset, TestNodeThatNothingCuresIsCordonedAndLeftToAPerson,
//     TestOutOfServiceOnlyWhereTheMachineIsGone, TestAMachineThatIsSwitchedOffReleasesItsPods,
//     TestLeadershipMovesOnlyWhereEverythingSaysSo.
//  9. A person's decision wins, even during a repair: TestPersonsWord,
//     TestSilenceBetweenTwoAttemptsHoldsTheSecond, TestLastLookBeforeTheCall,
//     TestApprovedRepairBegins, TestCancelledRepairStaysCancelled, TestCancelOutlivesTheHistory,
//     TestACancelHoldsWithoutTheNodesKeys, TestRequestedRebootNeedsNoAlert,
//     TestBreakGlassExpiresAfterAnHour, TestAdmissionTable, TestUncordonInMidDrainCancelsTheRepair,
//     TestCancelInMidDrainStopsEvictionsAndUncordons, TestPauseBetweenIntentAndApprovalStopsIt,
//     TestPeopleBetweenTwoHosts, TestPauseInTheLastMoment.
//  10. A name from an alert is used only if it equals the name of an existing object: TestRoute,
//     TestValidNodeName.
//  11. Everything that arrives is bounded: TestAdmitKeepsTheNodeBounded, TestHistoryIsBounded,
//     TestHistoryRemembersTenOfEachKind, TestLongestRecordIsReadable, TestJournalIsBounded,
//     TestLongUseKeepsItShort, TestLedgerFitsInAConfigMap,
//     TestAFullLedgerForgetsOldCuresAndTheRepairBegins.
//
// The API servers are a target with rules of their own. Package rescue repairs them with its own
// guards, and with a journal outside the API servers. Three tests cover its rules:
// TestWhatARescueMayDo, TestWhateverHappensToTheControlPlane and TestEachClauseOfARescueIsNeeded.
//
// The guards are in the order of the design (TestGuardsStandInTheOrderOfTheDesign). Each guard
// holds before those behind it (TestEachGuardSpeaksBeforeThoseBehindIt), and every guard is needed
// (TestNoGuardIsIdle).
package remediations
