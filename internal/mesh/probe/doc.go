// Package probe tests whether new flows pass between two agents, over TCP and UDP, and answers such
// tests of other agents.
//
// A question and its answer are one message each: a header, and zeros up to the length in the
// header. The header has these fields (offset, length, content):
//
//	 0  4  the protocol and its version, "ddm1"
//	 4  1  'q' a question, 'a' an answer
//	 5  1  't' over TCP, 'u' over UDP
//	 6  2  the length of the whole message
//	 8  8  when the question was sent, in nanoseconds since 1970 by the sender's clock
//	16 16  a nonce
//	32  8  the sender's node: the first 8 bytes of the SHA-256 of its name
//	40 32  HMAC-SHA256 of the bytes before this field
//
// An answer repeats the question's time, nonce and length, and is signed with the question's key.
//
// What always holds, with the test that guards it:
//
//   - A client without a key gets no byte (TestStrangersGetNoByte). A client with a key gets at
//     most as many bytes as it sent, so the port cannot be used to amplify an attack
//     (TestAnAnswerIsNeverLongerThanItsQuestion).
//   - A question is answered once, and only if its time differs from the server's clock by at most
//     a minute (TestAQuestionIsAnsweredOnce, TestAQuestionGrowsOld). A question for UDP is invalid
//     over TCP, and an answer is never accepted as a question (TestAMessageIsGoodForOneUse).
//   - Answers, connections, goroutines and memory are limited, in total and for each source
//     (TestAFloodIsBounded, TestConnectionsAreBounded).
//   - Every probe is a new flow of a new socket (TestEveryProbeIsANewFlow).
//   - Only a missing answer counts as lost. If the other side answers, even with a refusal, the
//     path works (TestOnlySilenceIsALoss). The path also works if the other side's kernel
//     acknowledges the bytes, but the agent does not answer
//     (TestALossyPathIsDistinguishedFromASilentAgent). A missing answer over UDP counts as lost
//     only if the outcome over TCP is OK or Lost (TestASilentAgentGivesNoResult).
package probe
