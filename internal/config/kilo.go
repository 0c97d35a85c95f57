package config

import (
	"drydock.dev/drydock/remediations"
)

// maxMoves limits the moves of a mesh leadership in one repair. The record on the Node lists all
// moves.
const maxMoves = 4

// aboutLeaders refuses keys that make no sense in a policy about mesh leaders.
func (b *builder) aboutLeaders(at pointer, r *rawPolicy) {
	if r.NodeSelector != nil {
		b.Fault(at.To("nodeSelector"), "a policy about leaders cannot select nodes: it is about the leader of the alert's location; remove it")
	}
	moves := 0
	for i, step := range r.Plan {
		if step.Attempts != nil && b.core.Remediation(step.Step).Target == remediations.KindLocation {
			moves += *step.Attempts
		}
		if moves > maxMoves && !b.Faulty(at.To("plan", i, "attempts")) {
			b.Fault(at.To("plan", i, "attempts"), "makes %d moves in one repair; write at most %d in total, because each move drops the connections that the leader relays", moves, maxMoves)
			return
		}
	}
}
