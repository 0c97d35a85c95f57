// Package hosts looks at systemd units on machines over SSH, restarts them, reboots the machines, and sees API servers by their own
// word. It is what is left when a node's kubelet, or the API server itself, does not answer.
//
// A host gets the commands of a closed list: systemctl show, journalctl, a systemd-run that restarts one unit, and the three words
// of deploy/hosts/drydock-host, which alone knows how to reboot: boot, reboot and sysrq. Names are checked before they become words, and words before they become a line. The restart is a transient unit named after the one
// it restarts, with the attempt for a description: while it is there systemd refuses a second, so that several Drydocks
// exclude each other on the host itself, and the host's journal shows every restart with the attempt that it was.
//
//	Restart: look ─▶ mayStill ─▶ systemd-run, once ─▶ look until the unit is another invocation
//	          │          │             │                   ├─ it is: accepted
//	          └ refused ─┴─ refused ───┤                   └─ the time is over: unknown
//	                                   ├─ said no, for sure: refused (ErrBusy: another attempt is at it)
//	                                   └─ cut, or no answer: unknown, unless the host shows our own attempt
//
//	Reboot: look at the boot ID ─▶ mayStill ─▶ drydock-host reboot, once: the host compares the boot ID, then reboots
//	          │                       │             ├─ it said so: accepted
//	          └──────── refused ──────┴─ refused ───┼─ said no, for sure: refused
//	                                                └─ cut, or no answer: unknown
//
// What always holds, with the test that guards it:
//
//   - A host gets commands of the closed list, whatever names come in (FuzzCommandsAreOfTheClosedList,
//     TestAShellSeesTheWordsAndNothingElse, TestAUnitThatIsNotNamedHereReachesNoHost), and the script that is shipped lets
//     nothing else through (FuzzTheShippedScriptLetsNothingElseThrough).
//   - A host that does not prove by its key that it has that name is told nothing, and no key is ever learned
//     (TestAHostThatIsNotKnownOrShowsAnotherKeyIsToldNothing, TestAHostIsKnownByItsName, TestACertificateOfAnAuthorityIsHonoured).
//   - A restart is sent once, right after the caller's last word (TestTheLastWordIsAskedForRightBeforeTheCommand,
//     TestAnAttemptIsSentOnce), and refused means that certainly nothing happened
//     (TestACutBeforeTheCommandIsRefusedAndOneAfterItUnknown, TestAFailureThatProvesNothingIsUnknown).
//   - A boot is ended once, and only the one that the intent names (TestABootIsEndedOnceByTheShippedScript,
//     TestABootBetweenTheLookAndTheCommandIsNotEnded, TestARebootIsOfTheBootThatTheNodeReports); accepted is the host's own word
//     (TestWhatBecameOfARebootIsWhatTheHostSays); all of the contract of providers (TestRebootConformance).
//   - A host reboots only in the ways that it allows, none as it is shipped (TestAHostIsRebootedInTheWaysThatItAllows,
//     TestTheShippedScriptForbidsReboots), and by sysrq only for that step (TestARebootIsNeverBySysrq).
//   - One restart of a unit at a time (TestASecondRestartIsRefusedBySystemdWhileTheFirstIsThere,
//     TestTheRaceForAUnitIsSystemdsToDecide).
//   - A context ends everything, wherever it hangs, and nothing is left behind (TestAHangEndsWithTheTimeAtEveryStage); what a
//     host says is bounded (TestEndlessOutputIsCutOff) and fit for people (TestEvidenceIsTheEndOfTheJournalAndFitForPeople).
//   - A file that changes counts for the next command (TestFilesThatChangeCountForTheNextCommand).
//   - What cannot be verified or says nothing is no fault of an API server
//     (TestWhoRefusesOrHangsFailsAndWhoCannotBeVerifiedIsUnknown, TestACallerThatHasNoTimeHasSeenNothing).
package hosts
