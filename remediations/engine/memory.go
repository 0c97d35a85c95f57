package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// memory is what the engine remembers of one node between passes. All of it may be lost: the record
// has what matters.
type memory struct {
	targetMemory
	lookSince time.Time
	lease     *signs.Lease
	// work is the repeatable step that this process runs on the node. Nil: none.
	work *working
	// survey is the provider's answer before a step. replacement and pods are later answers about
	// the step's proof. asking: a question is under way.
	survey      *remediations.Survey
	replacement *remediations.Replacement
	pods        *remediations.PodProof
	asking      bool
	// completing: the last attempt is being completed. completedAt is the time of the last try.
	// completed is the intent of the attempt that has been completed.
	completing  bool
	completedAt time.Time
	completed   string
	// read are the signs of a policy's witness that were read. testifying: they are being read.
	read       map[signs.Sign]signs.Testimony
	testifying bool
	alerts     uint64
	// writes is the time during which no write on the Node succeeds.
	writes outage
	// unwritten: the last write on the Node was certainly refused.
	unwritten bool
	// written is the Node as this process last wrote it, until the cache has caught up. over is the
	// Node before that write.
	written, over *corev1.Node
	wroteAt       time.Time
	// journal is the decoded journal of readOf.
	journal remediations.Journal
	readOf  *corev1.Node
	// reset is what the reset on the Node asked the ledger to forget. It stays until the Node is
	// written, because the ledger's answer may be lost.
	reset string
	// standing is the last decision, if the next pass may use it again while its inputs stay the
	// same. Nil: the next pass decides again.
	standing *standing
	// shown are the node's series after its last decision.
	shown []nodeSample
	// silence is the silence of a repair if its Node was deleted before the answer to its call
	// came.
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
