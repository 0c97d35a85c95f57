// Package alertmanager queries Alertmanager's API v2 for the alerts that are really firing,
// silenced, inhibited and muted, and why. A webhook post is a hint that may be late, lost or
// forged, so decisions depend on the answers of the Alertmanager replicas. The package also makes
// and ends Drydock's own silences.
//
// Every address of every configured host name is a replica of its own: replicas converge only
// eventually, and Drydock must see a silence on any of them. The package returns each replica's
// answer separately, as an alerts.Replica. The caller decides what a disagreement or a missing
// answer means.
//
// These rules always hold. The tests in brackets check them:
//
//   - The result for a replica is its complete list of alerts, or an error. Only a complete empty
//     list means "no alerts" (TestClientRefusesWhatIsNotAnAnswer, TestClientRefusesTooManyAlerts).
//     If mute times are requested, they must be complete, too (TestUnknownMuteTimesFailTheReplica).
//   - All requests are sent after Look was called (TestPollAsksAfterTheCall), and each replica has
//     one poll at a time (TestPollKeepsOneRequestAReplica).
//   - A replica that hangs costs its timeout and nothing else (TestPollOutlivesAHungReplica).
//   - A silence counts whether or not its author is known
//     (TestASilenceWithoutDetailsStillSilences).
//   - An alert's fingerprint is computed from its labels, as Alertmanager does it, and never taken
//     from the answer (TestFingerprintIsAlertmanagersOwn).
//   - A silence that may exist is not made again (TestASilenceWithoutAnAnswerIsNotMadeAgain).
//     Drydock's silences always have a matcher, an end, an author and a comment
//     (TestSilenceRefusesWhatIsNotNarrow).
//   - No credential is in an error or a metric (TestErrorsHideCredentials).
//
// The folder real tests the behaviour of the real Alertmanager.
package alertmanager
