// Package receiver handles Alertmanager's webhook posts: it authenticates, bounds and decodes them,
// and hands the alerts over. It decides nothing: a Recorder takes each alert, or returns why the
// alert cannot be used.
//
// One path, POST /v1/alerts, and one answer for every case:
//
//	200  {"accepted":n,"ignored":n}   every usable alert in the post was taken
//	400  not a version 4 payload, or a body that did not arrive whole
//	401  no token, or not ours
//	404, 405  another path, another method
//	413  more bytes or alerts than allowed: group by node
//	415  not application/json
//	500  a fault of ours
//	503  a usable alert could not be taken within 10 s (the others were), or too
//	     many posts at once; with Retry-After
//
// Every other answer than 200 is {"error":"a sentence"}. Alertmanager retries
// only 5xx at once, so 503 is for "later" and 4xx for "never".
//
// What always holds, with the test that guards it:
//
//   - 200 means taken: each usable alert is on its Node, or in intake.Queue's bounded queue, which
//     is written next (TestEveryAnswerAndItsEffect, TestOneThatCannotBeWrittenLosesNoOther).
//     Alertmanager stays the durable source: the leader's poll brings the queued alerts of a
//     process that died (TestAProcessThatDiesWithAFullQueueLosesNothingThatFires).
//   - Each alert is judged by its own status and identified by its labels. The group's status and
//     the fingerprint in the post are not read (TestAlertsAreJudgedOneByOne).
//   - All input is bounded, in bytes, number and time (FuzzPayload, TestASlowBodyIsCutOff,
//     TestPostsAtOnceAreBounded).
//   - An unauthenticated client costs no more than reading a header (TestEveryAnswerAndItsEffect).
//     No unprotected port listens beyond loopback by mistake (TestNewRefusesToStart).
//   - No panic ends the process (TestAPanicIsAnAnswer).
package receiver
