// Package probe tests whether new flows pass between two agents, over TCP and UDP, and answers such
// tests.
//
// A question and its answer are one message each: a header and zeros up to the length that the
// header states.
//
//	 0  4  the protocol and its version, "ddm1"
//	 4  1  'q' a question, 'a' an answer
//	 5  1  't' over TCP, 'u' over UDP
//	 6  2  the length of the whole message
//	 8  8  when it was asked, in nanoseconds since 1970 by the asker's clock
//	16 16  a nonce
//	32  8  who made the message: the head of the SHA-256 of its node's name
//	40 32  HMAC-SHA256 of all before it
//
// An answer repeats the question's time, nonce and length, and is signed with the question's key.
//
// What always holds, with the test that guards it:
//
//   - A client without a key gets no byte (TestStrangersGetNoByte). A client with a key gets at
//     most as many bytes as it sent (TestAnAnswerIsNeverLongerThanItsQuestion): the port amplifies
//     nothing.
//   - A question is answered once, and only for a minute (TestAQuestionIsAnsweredOnce,
//     TestAQuestionGrowsOld). A question for UDP is invalid over TCP, and an answer is never
//     accepted as a question (TestAMessageIsGoodForOneUse).
//   - Answers, connections, goroutines and memory are bounded, in total and by source
//     (TestAFloodIsBounded, TestConnectionsAreBounded).
//   - Every probe is a new flow of a new socket (TestEveryProbeIsANewFlow).
//   - Only silence is a loss. A far end that answers, even with a refusal, was reached: that shows
//     no fault of forwarding (TestOnlySilenceIsALoss). So was one whose kernel accepts the bytes
//     and whose agent is silent (TestALossyPathIsDistinguishedFromASilentAgent). Silence over UDP
//     is a loss only if the probe over TCP had a result (TestASilentAgentGivesNoResult).
package probe
