// Package hosts works over SSH on the machines behind Nodes. It reads the state of systemd units,
// restarts units, and reboots machines. It also checks the readiness of API servers. SSH still
// works when a node's kubelet, or the API server itself, does not answer.
//
// Drydock sends only commands of a closed list to a host: systemctl show, journalctl, a systemd-run
// that restarts one unit, and the script deploy/hosts/drydock-host with boot, reboot or sysrq. Only
// that script can reboot a host. Drydock checks every name and every word of a command before it
// sends the command.
//
// The systemd-run makes a transient unit that restarts the unit. The transient unit's name contains
// the unit's name, and its description names the repair attempt. While the transient unit exists,
// systemd refuses a second one. So several installations of Drydock cannot restart a unit at the
// same time, and the host's journal shows every restart with its attempt. A restart is proven when
// the unit has a new invocation ID, which systemd gives to each start.
//
//	Restart: read the state ─▶ mayStill ─▶ systemd-run, once ─▶ read until the invocation is new
//	          │                  │             │                   ├─ it is new: accepted
//	          └───── refused ────┴─ refused ───┤                   └─ no time left: unknown
//	                                           ├─ nothing was done: refused (ErrBusy: another
//	                                           │  attempt is restarting the unit)
//	                                           └─ no answer: unknown, unless the host shows this
//	                                              attempt
//
//	Reboot: read the boot ID ─▶ mayStill ─▶ drydock-host reboot BOOT-ID, once
//	          │                     │             ├─ the host confirms: accepted
//	          └────── refused ──────┴─ refused ───┼─ nothing was done: refused
//	                                              └─ cut, or no answer: unknown
//
// These rules always hold. The names in brackets are the tests that check them:
//
//   - A host receives only commands of the closed list, whatever the names contain
//     (FuzzCommandsAreOfTheClosedList, TestAShellSeesTheWordsAndNothingElse,
//     TestAUnitThatIsNotNamedHereReachesNoHost). The shipped script refuses every other command
//     (FuzzTheShippedScriptLetsNothingElseThrough).
//   - A host that does not prove its name by its key receives no command. Drydock never learns a
//     key from a host (TestAnUnknownHostOrAnotherKeyGetsNoCommand, TestAHostIsKnownByItsName,
//     TestACertificateOfAnAuthorityIsHonoured).
//   - A restart is sent once, right after the caller's last check
//     (TestTheLastCheckIsRightBeforeTheCommand, TestAnAttemptIsSentOnce). CallRefused means that
//     certainly nothing happened (TestACutBeforeTheCommandIsRefusedAndOneAfterItUnknown,
//     TestAFailureThatProvesNothingIsUnknown).
//   - A reboot command names the boot ID that Drydock has recorded on the Node. It can end only
//     this boot (TestABootIsEndedOnceByTheShippedScript,
//     TestABootBetweenTheLookAndTheCommandIsNotEnded, TestARebootIsOfTheBootThatTheNodeReports).
//     CallAccepted means that the host itself confirmed the reboot
//     (TestWhatBecameOfARebootIsWhatTheHostSays). The reboot passes the conformance suite of
//     providers (TestRebootConformance).
//   - A host carries out only the kinds of reboot that its drydock-host allows. The shipped script
//     allows no reboot (TestAHostIsRebootedInTheWaysThatItAllows,
//     TestTheShippedScriptForbidsReboots). Only the step sysrq uses sysrq
//     (TestARebootIsNeverBySysrq).
//   - A unit has one restart at a time (TestASecondRestartIsRefusedBySystemdWhileTheFirstIsThere,
//     TestTheRaceForAUnitIsSystemdsToDecide).
//   - When a context ends, its call ends and closes the connection, at whatever point the host
//     hangs (TestAHangEndsWithTheTimeAtEveryStage).
//   - A host's output is limited (TestEndlessOutputIsCutOff) and made printable
//     (TestEvidenceIsTheEndOfTheJournalAndFitForPeople).
//   - A changed key or known_hosts file is used from the next command on
//     (TestFilesThatChangeCountForTheNextCommand).
//   - An API server that cannot be verified, or whose state is unknown, does not count as failing
//     (TestWhoRefusesOrHangsFailsAndWhoCannotBeVerifiedIsUnknown,
//     TestACallerThatHasNoTimeHasSeenNothing).
package hosts
