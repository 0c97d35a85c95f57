package engine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// leaderMemory is what the engine remembers of one node and its location between passes. All of it may be lost.
type leaderMemory struct {
	sight   *remediations.LeaderSight
	looking bool
	call    *remediations.Call
	// wellSince is since when the location is well without a break, wellHeard as for a node.
	wellSince, wellHeard time.Time
	newID                string
	pass                 int
}

// locationOn is a location as some node leads it, or led it.
type locationOn struct{ node, location string }

func (e *Engine) rememberLeader(of locationOn) *leaderMemory {
	m := e.leaderMemory[of]
	if m == nil {
		m = &leaderMemory{}
		e.leaderMemory[of] = m
	}
	return m
}

// forgetLeaders drops what is remembered of locations that this pass did not meet.
func (e *Engine) forgetLeaders() {
	for of, m := range e.leaderMemory {
		if m.pass != e.passes && !m.looking && (m.call == nil || m.call.Outcome != "") {
			delete(e.leaderMemory, of)
		}
	}
}

// lookAt looks at the location beside the loop.
func (p *passing) lookAt(m *leaderMemory, location string) {
	if p.Leaders == nil || m.looking || p.locationsLooked >= maxLooks {
		return
	}
	m.looking = true
	p.locationsLooked++
	began := p.Clock.Now()
	go func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.CallTimeout)
		defer cancel()
		g := p.Leaders.Look(ctx, location)
		g.At = began
		p.aside(func() {
			m.looking = false
			p.locationsLooked--
			m.sight = &g
		})
	}()
}

// leads says which node an alert about a location belongs on: the one that has it beside a repair of the location's leader
// under way, who may lead no more; else the one that leads by the cache; empty: none, or it cannot be said.
func (e *Engine) leads() func(fingerprint, location string) string {
	if e.Leaders == nil {
		return func(string, string) string { return "" }
	}
	var repaired []*corev1.Node // read at the first of them: most polls meet no location's alert
	var leads func(location string) string
	return func(fingerprint, location string) string {
		if leads == nil {
			leads = e.Leaders.Locations()
			for _, n := range e.nodes {
				if r, err := remediations.DecodeRecord(n.Annotations[remediations.LeaderKey]); err == nil && r.Phase != remediations.Exhausted {
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
