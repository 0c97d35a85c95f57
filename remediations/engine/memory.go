package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// memory is what the engine remembers about one node between passes. All of it may be lost: the
// record on the Node has what matters.
type memory struct {
	targetMemory
	lookSince time.Time
	lease     *signs.Lease
	// work is the repeatable step that this process runs on the node. It is nil if there is none.
	work *working
	// survey is the provider's answer about the machine before a step. replacement and pods are the
	// answers after a step: they prove the step, or name what its proof still lacks. asking is true
	// while a question to the provider is unanswered.
	survey      *remediations.Survey
	replacement *remediations.Replacement
	pods        *remediations.PodProof
	asking      bool
	// completing is true while the engine calls Complete for the last attempt. completedAt is when
	// the last such call ended. completed is the intent ID of the attempt that has nothing left to
	// complete.
	completing  bool
	completedAt time.Time
	completed   string
	// read are the last readings of the signs of a fault that a policy's witness uses. testifying
	// is true while signs are being read.
	read       map[signs.Sign]signs.Testimony
	testifying bool
	alerts     uint64
	// writes describes the present failure to write on the Node, if there is one.
	writes outage
	// unwritten is true if the last write on the Node was certainly refused.
	unwritten bool
	// written is the Node as this process last wrote it. It is kept until the cache shows that
	// write. over is the Node from before that write.
	written, over *corev1.Node
	wroteAt       time.Time
	// journal is the decoded content of the Node's annotations: records, alerts and history. readOf
	// is the version of the Node that it was decoded from.
	journal remediations.Journal
	readOf  *corev1.Node
	// reset is the message of the Event that answers a person's reset of the node. It is kept until
	// the annotation of the reset is removed from the Node. The ledger is saved before that, so a
	// later pass may find nothing more to reset.
	reset string
	// standing is the last decision, if the next pass may use it again while its inputs stay the
	// same. It is nil if the next pass must decide again.
	standing *standing
	// shown are the series about this node that the metrics show since its last decision.
	shown []nodeSample
	// silence is the ID of the silence that Drydock created for a repair. It is set only if the
	// Node was deleted before the provider's answer arrived.
	silence string
}

// remember returns the node's memory, and creates it if necessary.
func (e *Engine) remember(node string) *memory {
	m := e.memory[node]
	if m == nil {
		m = &memory{}
		e.memory[node] = m
	}
	return m
}
