// Package probe asks whether new flows pass between two agents, over TCP and UDP, and answers such questions.
//
// A question and its answer are one message each: a header and zeros up to the length that the header states.
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
// An answer repeats the question's time, nonce and length, and is made with the key that the question was made with.
//
// What always holds, with the test that guards it:
//
//   - Whoever has no key gets not a byte (TestStrangersGetNoByte), and whoever has one no more bytes than they sent
//     (TestAnAnswerIsNeverLongerThanItsQuestion): the port amplifies nothing.
//   - A question is answered once, and for a minute only (TestAQuestionIsAnsweredOnce, TestAQuestionGrowsOld); one over
//     UDP says nothing over TCP, and no answer is a question (TestAMessageIsGoodForOneUse).
//   - Answers, connections, goroutines and memory are bounded, in total and by source (TestAFloodIsBounded,
//     TestConnectionsAreBounded).
//   - Every probe is a new flow of a new socket (TestEveryProbeIsANewFlow).
//   - Only silence is a loss. A far end that speaks, be it to refuse, was reached: that is no word on forwarding
//     (TestOnlySilenceIsALoss). So was one whose kernel takes our bytes and whose agent says nothing
//     (TestAWayThatLosesIsToldFromAnAgentThatIsMute); and silence over UDP is a loss only where TCP learnt something
//     (TestAnAgentThatKeepsSilentIsNoWord).
package probe
