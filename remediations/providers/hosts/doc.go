// Package hosts reads the state of systemd units on machines over SSH, restarts units, reboots
// machines, and reads API servers' own readiness. These actions remain when a node's kubelet, or
// the API server itself, does not answer.
//
// A host gets the commands of a closed list: systemctl show, journalctl, a systemd-run that
// restarts one unit, and the three words of deploy/hosts/drydock-host. That script alone can reboot
// a host: boot, reboot and sysrq. Names are checked before they become words, and words before they
// become a line. The restart is a transient unit that is named after the unit that it restarts, and
// has the attempt as its description. While it exists systemd refuses a second one. So several
// Drydocks exclude each other on the host itself, and the host's journal shows every restart with
// its attempt.
//
//	Restart: look ─▶ mayStill ─▶ systemd-run, once ─▶ look until the unit is another invocation
//	          │          │             │                   ├─ it is: accepted
//	          └ refused ─┴─ refused ───┤                   └─ the time has ended: unknown
//	                                   ├─ it did nothing: refused (ErrBusy: another attempt works)
//	                                   └─ no answer: unknown, unless the host shows this attempt
//
//	Reboot: look at the boot ID ─▶ mayStill ─▶ drydock-host reboot, once (after the same boot ID)
//	          │                       │             ├─ it said so: accepted
//	          └──────── refused ──────┴─ refused ───┼─ it did nothing: refused
//	                                                └─ cut, or no answer: unknown
//
// What always holds, with the test that guards it:
//
//   - A host gets commands of the closed list, whatever names come in
//     (FuzzCommandsAreOfTheClosedList, TestAShellSeesTheWordsAndNothingElse,
//     TestAUnitThatIsNotNamedHereReachesNoHost). The shipped script lets nothing else through
//     (FuzzTheShippedScriptLetsNothingElseThrough).
//   - A host that does not prove its name by its key receives nothing, and no key is ever learned
//     (TestAnUnknownHostOrAnotherKeyGetsNoCommand, TestAHostIsKnownByItsName,
//     TestACertificateOfAnAuthorityIsHonoured).
//   - A restart is sent once, right after the caller's last check
//     (TestTheLastCheckIsRightBeforeTheCommand, TestAnAttemptIsSentOnce), and refused means
//     that certainly nothing happened (TestACutBeforeTheCommandIsRefusedAndOneAfterItUnknown,
//     TestAFailureThatProvesNothingIsUnknown).
//   - A reboot ends one boot, once, and only the boot that the intent names
//     (TestABootIsEndedOnceByTheShippedScript, TestABootBetweenTheLookAndTheCommandIsNotEnded,
//     TestARebootIsOfTheBootThatTheNodeReports). Accepted means that the host itself confirmed the
//     reboot (TestWhatBecameOfARebootIsWhatTheHostSays). The whole contract of providers holds
//     (TestRebootConformance).
//   - A host reboots only in the ways that it allows, and as shipped it allows none
//     (TestAHostIsRebootedInTheWaysThatItAllows, TestTheShippedScriptForbidsReboots). It uses sysrq
//     only for that step (TestARebootIsNeverBySysrq).
//   - One restart of a unit at a time (TestASecondRestartIsRefusedBySystemdWhileTheFirstIsThere,
//     TestTheRaceForAUnitIsSystemdsToDecide).
//   - The end of a context ends everything, at every stage of a hang, and nothing is left behind
//     (TestAHangEndsWithTheTimeAtEveryStage). A host's output is bounded
//     (TestEndlessOutputIsCutOff) and fit for people
//     (TestEvidenceIsTheEndOfTheJournalAndFitForPeople).
//   - A changed file counts for the next command (TestFilesThatChangeCountForTheNextCommand).
//   - An API server that cannot be verified, or whose state is unknown, does not count as failing
//     (TestWhoRefusesOrHangsFailsAndWhoCannotBeVerifiedIsUnknown,
//     TestACallerThatHasNoTimeHasSeenNothing).
package hosts
