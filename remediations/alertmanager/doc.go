// Package alertmanager queries Alertmanager's API v2 for the alerts that are really firing,
// silenced, inhibited and muted, and why. A webhook post is a hint that may be late, lost or
// forged; decisions depend on the replicas' own answers. The package also makes and ends Drydock's
// own silence.
//
// Every address of every configured host name is a replica of its own, because replicas converge
// only eventually and a silence on one of them must be seen. Each replica's reply is an
// alerts.Replica of its own: the caller decides what a disagreement or a missing reply means.
//
// What always holds, with the test that guards it:
//
//   - An answer is a whole list of alerts or an error, never a part of one, and nothing else reads
//     as "no alerts" (TestClientRefusesWhatIsNotAnAnswer, TestClientRefusesTooManyAlerts). If mute
//     times are requested, the same applies to the groups: without them nothing is known
//     (TestUnknownMuteTimesFailTheReplica).
//   - All requests are sent after Look was called (TestPollAsksAfterTheCall), with one poll of a
//     replica at a time (TestPollKeepsOneRequestAReplica).
//   - A replica that hangs costs its timeout and nothing else (TestPollOutlivesAHungReplica).
//   - A silence counts whether or not its author is known
//     (TestASilenceWithoutDetailsStillSilences).
//   - The key of an alert is computed from its labels, as Alertmanager does it, and never taken
//     from the answer (TestFingerprintIsAlertmanagersOwn).
//   - A silence is requested once: one that may exist is not made again
//     (TestASilenceWithoutAnAnswerIsNotMadeAgain), and it is narrow
//     (TestSilenceRefusesWhatIsNotNarrow).
//   - No credential is in an error or a metric (TestErrorsHideCredentials).
//
// The folder real tests the behaviour of the real Alertmanager.
package alertmanager
