// Package receiver handles Alertmanager's webhook posts: it authenticates, bounds and decodes them,
// and passes the alerts to a Recorder. The Recorder writes or queues each alert, or returns why the
// alert cannot be used. The receiver itself decides nothing about alerts.
//
// There is one path, POST /v1/alerts, with these answers:
//
//	200  {"accepted":n,"ignored":n}   every usable alert in the post was accepted
//	400  not a version 4 payload, or a body that did not arrive whole
//	401  no token, or a wrong one
//	404, 405  another path, another method
//	413  more bytes or alerts than allowed; a group_by with node makes posts smaller
//	415  not application/json
//	500  a fault of the receiver
//	503  a usable alert was not accepted within 10 s (the others were), or too
//	     many posts at the same time; with Retry-After
//
// The body of every answer other than 200 is {"error":"a sentence"}. Alertmanager itself retries a
// post only after a 5xx. So 503 means "send it again later", and 4xx means that a retry of the same
// post is useless.
//
// These rules always hold. The tests in brackets check them:
//
//   - 200 means that each usable alert is on its Node or in intake.Queue. This bounded queue is
//     written to the Nodes next (TestEveryAnswerAndItsEffect,
//     TestOneThatCannotBeWrittenLosesNoOther). Alertmanager stays the durable source: if a process
//     ends with alerts in its queue, the leader's poll brings them
//     (TestAProcessThatDiesWithAFullQueueLosesNothingThatFires).
//   - The receiver reads the status and the labels of each alert. It does not read the group's
//     status and the fingerprints in the post (TestAlertsAreJudgedOneByOne).
//   - All input is bounded, in bytes, number and time (FuzzPayload, TestASlowBodyIsCutOff,
//     TestPostsAtOnceAreBounded).
//   - The receiver reads only the header of an unauthenticated client's request
//     (TestEveryAnswerAndItsEffect). It does not listen beyond loopback without protection, unless
//     Options.Insecure allows this (TestNewRefusesToStart).
//   - A panic does not end the process (TestAPanicIsAnAnswer).
package receiver
