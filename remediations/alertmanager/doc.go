// Package alertmanager asks Alertmanager's API v2 what is really firing,
// silenced and inhibited. A webhook post is a hint that may be late, lost or
// forged; a Snapshot of this package is what a decision may rest on.
//
// Every address of every configured host name is a replica of its own, because
// replicas converge only eventually and a silence on one of them must be seen.
// Each replica's reply stands alone in the Snapshot: what a disagreement or a
// missing reply means is the caller's to decide.
//
// What always holds, with the test that guards it:
//
//   - An answer is a whole list of alerts or an error, never a part of one, and
//     nothing that is not such a list reads as "no alerts"
//     (TestClientRefusesWhatIsNotAnAnswer, TestClientRefusesTooManyAlerts).
//   - All replies of a Snapshot were asked for after Poll was called
//     (TestPollAsksAfterTheCall), one request a replica at a time
//     (TestPollKeepsOneRequestAReplica).
//   - A replica that hangs costs its timeout and nothing else
//     (TestPollOutlivesAHungReplica).
//   - The key of an alert is computed from its labels, as Alertmanager does it,
//     and never taken from the answer (TestFingerprintIsAlertmanagersOwn).
//   - No credential is in an error or a metric (TestErrorsHideCredentials).
package alertmanager
