// Package alertmanager asks Alertmanager's API v2 what is really firing,
// silenced, inhibited and muted, and by whom. A webhook post is a hint that may
// be late, lost or forged; the replicas' own answers are what a decision may rest
// on. It also makes and ends Drydock's own silence.
//
// Every address of every configured host name is a replica of its own, because
// replicas converge only eventually and a silence on one of them must be seen.
// Each replica's reply is an alerts.Replica of its own: what a disagreement or a
// missing reply means is the caller's to decide.
//
// What always holds, with the test that guards it:
//
//   - An answer is a whole list of alerts or an error, never a part of one, and
//     nothing that is not such a list reads as "no alerts"
//     (TestClientRefusesWhatIsNotAnAnswer, TestClientRefusesTooManyAlerts). Where
//     mute times are asked for, the same goes for the groups: not to know whether
//     an alert is muted is not to know anything (TestUnknownMuteTimesFailTheReplica).
//   - All replies were asked for after Look was called
//     (TestPollAsksAfterTheCall), by one poll a replica at a time
//     (TestPollKeepsOneRequestAReplica).
//   - A replica that hangs costs its timeout and nothing else
//     (TestPollOutlivesAHungReplica).
//   - A silence silences whether or not it says who made it
//     (TestASilenceWithoutDetailsStillSilences).
//   - The key of an alert is computed from its labels, as Alertmanager does it,
//     and never taken from the answer (TestFingerprintIsAlertmanagersOwn).
//   - A silence is asked for once: what may have been made is not made again
//     (TestASilenceWithoutAnAnswerIsNotMadeAgain), and it is narrow
//     (TestSilenceRefusesWhatIsNotNarrow).
//   - No credential is in an error or a metric (TestErrorsHideCredentials).
//
// What holds of the real Alertmanager is tested in the folder real.
package alertmanager
