package config

import (
	"drydock.dev/drydock/remediations"
)

// maxMoves bounds the moves of one repair: the record holds all of them.
const maxMoves = 4

// aboutLeaders refuses keys that have no meaning for the leaders of locations.
func (b *builder) aboutLeaders(at pointer, r *rawPolicy) {
	if r.NodeSelector != nil {
		b.Fault(at.To("nodeSelector"), "a policy about leaders selects no nodes: it is about the leader of the alert's location")
	}
	moves := 0
	for i, step := range r.Plan {
		if step.Attempts != nil && b.core.Remediation(step.Step).Target == remediations.KindLocation {
			moves += *step.Attempts
		}
		if moves > maxMoves && !b.Faulty(at.To("plan", i, "attempts")) {
			b.Fault(at.To("plan", i, "attempts"), "makes %d moves of one leader; write at most %d in all, each one drops what it relays", moves, maxMoves)
			return
		}
	}
}
