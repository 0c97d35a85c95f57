package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// memory is what the engine remembers of one node between passes. All of it may be lost: the record has what counts.
type memory struct {
	repairMemory
	lookSince time.Time
	lease     *signs.Lease
	// work is the repeatable step that this process is doing on the node; nil: none.
	work *working
	// survey is what the provider said before a step, replacement and pods what was said about its proof since; asking says
	// that somebody is being asked.
	survey      *remediations.Survey
	replacement *remediations.Replacement
	pods        *remediations.PodProof
	asking      bool
	// read is what was read of the signs of a policy's witness; testifying says that they are being read.
	read       map[signs.Sign]signs.Testimony
	testifying bool
	alerts     uint64
	// writes is while no write on the Node succeeds.
	writes outage
	// unwritten says that the last write on the Node was refused for sure.
	unwritten bool
	// written is the Node as this process last wrote it, until the cache has caught up; over is what it wrote that over.
	written, over *corev1.Node
	wroteAt       time.Time
	// journal is what readOf carries, decoded once.
	journal remediations.Journal
	readOf  *corev1.Node
	// reset is what the ledger was told to forget by the reset on the Node, until the Node is written: the ledger's answer may be lost.
	reset string
	// standing is the last decision, where it stands for as long as what it rests on; nil: it does not.
	standing *standing
	// shown are the series of the node after its last decision.
	shown []nodeSample
	// silence is that of a repair whose Node was gone before its call was answered.
	silence string
	// told are the events already sent, by repair and reason.
	emitted Emitted
}

// remember is what is remembered of the node, begun where nothing was.
func (e *Engine) remember(node string) *memory {
	m := e.memory[node]
	if m == nil {
		m = &memory{emitted: Emitted{}}
		e.memory[node] = m
	}
	return m
}
