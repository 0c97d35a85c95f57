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
	work      *working
	// survey is the provider's answer before a step. replacement and pods are its answers after a
	// step: they prove the step, or name what the proof still lacks.
	survey      *remediations.Survey
	replacement *remediations.Replacement
	pods        *remediations.PodProof
	asking      bool
	// completed is the intent ID of the attempt that has nothing left to complete.
	completing  bool
	completedAt time.Time
	completed   string
	// read are the last readings of the signs that confirm an alert.
	read       map[signs.Sign]signs.Testimony
	testifying bool
	alerts     uint64
	writes     outage
	// unwritten is true if the last write on the Node was certainly refused.
	unwritten bool
	// written is the Node as this process wrote it, until the cache shows that write. over is the
	// Node from before.
	written, over *corev1.Node
	wroteAt       time.Time
	journal       remediations.Journal
	readOf        *corev1.Node
	// reset is the Event that answers a person's reset. It is kept until the annotation is removed,
	// because the ledger is saved before that and a later pass may find nothing left to reset.
	reset string
	// standing is nil if the next pass must decide again.
	standing *standing
	shown    []nodeSample
	// silence is set only if the Node was deleted before the provider's answer arrived.
	silence string
}

func (e *Engine) remember(node string) *memory {
	m := e.memory[node]
	if m == nil {
		m = &memory{}
		e.memory[node] = m
	}
	return m
}
