package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// leads says which node an alert about a location belongs on: the one that has it beside a repair of the location's leader
// under way, who may lead no more; else the one that leads by the cache; empty: none, or it cannot be said.
func (e *Engine) leads(context.Context) func(fingerprint, location string) string {
	if e.Locations == nil {
		return func(string, string) string { return "" }
	}
	var repaired []*corev1.Node // read at the first of them: most polls meet no location's alert
	var leads func(location string) string
	return func(fingerprint, location string) string {
		if leads == nil {
			leads = e.Locations.LeadsAll()
			for _, n := range e.nodes {
				if r, err := remediations.DecodeRecord(n.Annotations[remediations.LocationKey]); err == nil && r.Phase != remediations.Exhausted {
					repaired = append(repaired, n)
				}
			}
		}
		for _, n := range repaired {
			if _, carries := n.Annotations[remediations.AlertPrefix+fingerprint]; carries {
				return n.Name
			}
		}
		return leads(location)
	}
}

// tellSuccessor tells those who look at the new leader why it leads.
func (p *passing) tellSuccessor(r *remediations.Record) {
	if r.Intent.Outcome != remediations.CallAccepted {
		return
	}
	m := r.Moves[len(r.Moves)-1]
	p.tell(m.To, r.Intent.ID, Event{Reason: "LeaderMoved", Action: r.Intent.ID, Note: fmt.Sprintf("repair %s by policy %s gave %s the mesh leadership of location %s, which %s had", r.ID, r.Policy, m.To, m.Location, m.From)})
}
