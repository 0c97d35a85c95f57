package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Approval is what a sidecar is approved by.
type Approval struct {
	Provider string
	// Pod has the UID for which the decision was made, Node hosts it. Task is the id of the sidecar's task.
	Pod  remediations.Pod
	Node string
	Task string
}

// Sidecars looks at the gated sidecars of pods, and approves them.
type Sidecars interface {
	// Hosts says which node hosts the pod; empty: none does, or there is no such pod.
	Hosts(ctx context.Context, p remediations.Pod) (node string, err error)
	// Look reads the pod, its owner, and how the sidecar says that it is. It does not fail: what it could not find out is
	// in the answer. It changes nothing.
	Look(ctx context.Context, provider string, p remediations.Pod) remediations.Sighting
	// Approve looks once more, asks mayStill at the very last moment, and approves. The outcome is never empty; the error
	// says why it is not accepted.
	Approve(ctx context.Context, a Approval, mayStill func() error) (remediations.CallOutcome, error)
}

// sidecarsNamed bounds the exhausted sidecars that the ledger names.
const sidecarsNamed = 20

// sidecars decides about the sidecars of the node's pods, one after the other, and carries the decisions out.
func (p *passing) sidecars(n *corev1.Node) {
	for _, sc := range p.Config.Sidecars(p.journal(n)) {
		n = p.latest(n) // the one before may have written
		s := p.sidecarState(n, sc)
		d := p.core.decideSidecar(s, p.now)
		if d.Ask.Heartbeats {
			p.readHeartbeats()
			s = p.sidecarState(n, sc)
			d = p.core.decideSidecar(s, p.now)
		}
		p.carrySidecar(s, d)
	}
}

func sidecarOn(n *corev1.Node, key string) target {
	return target{n.Name, remediations.KindSidecar, key}
}

func (p *passing) sidecarState(n *corev1.Node, sc remediations.Sidecar) *remediations.SidecarState {
	p.now = p.Clock.Now()
	m, known := p.rememberTarget(sidecarOn(n, sc.Key))
	m.waits = m.waits || (!known && sc.Record != nil)
	state := p.stateOf(n, m)
	sc.Record = state.Journal.Sidecars[sc.Key]
	busy := p.busySidecars
	if p.Config.SidecarTakesPlace(sc.Record, p.sidecarsCounted) {
		busy--
	}
	return &remediations.SidecarState{State: state, Sidecar: sc, Sighting: m.sighting, Busy: busy, NewTask: p.NewTask()}
}

func (p *passing) carrySidecar(s *remediations.SidecarState, d remediations.Decision) {
	m, _ := p.rememberTarget(sidecarOn(s.Node, s.Key))
	at := p.now
	if s.Sighting != nil {
		at = s.Sighting.At // the first of the looks in a row that found it ready
	}
	m.found(d, at)
	if d.Ask.Alerts {
		p.askAlerts(p.remember(s.Node.Name))
	}
	if d.Ask.Sighting {
		p.sight(m, s, d)
	}
	p.recheck(d)
	was := s.Record
	wrote := p.putOf(s.State, s.Key, d)
	switch {
	case d.Verb == remediations.Issue && wrote:
		p.busySidecars++
		p.approve(s, m, d)
		p.tellPod(s, m, d.Record.Intent.ID, Event{Reason: "RepairStepIssued", Action: d.Record.Intent.ID, Note: d.Message})
	case d.Verb == remediations.Verify && wrote:
		m.call, m.sighting = nil, nil // what was seen before the call proves nothing
	case d.Verb == remediations.Keep:
		p.keepSidecar(s, m, d, wrote)
	case d.Verb == remediations.End && wrote:
		p.ended(d.Ended)
		p.tellPod(s, m, d.Ended.ID, Event{
			Warning: d.Ended.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(d.Ended.Outcome), Action: d.Ended.ID,
			Note: fmt.Sprintf("repair %s by policy %s after %s (%s): %s", d.Ended.ID, d.Ended.Policy, d.Ended.Ended.Sub(d.Ended.Began).Round(time.Second), strings.Join(d.Ended.Steps, ", "), d.Message),
		})
		p.again = true // another one may have waited for its turn
	}
	if wrote && p.Config.SidecarTakesPlace(was, p.sidecarsCounted) && (d.Record == nil || !d.Record.Phase.InFlight()) {
		p.busySidecars--
	}
	p.countSidecar(s, d, wrote)
}

func (p *passing) keepSidecar(s *remediations.SidecarState, m *targetMemory, d remediations.Decision, wrote bool) {
	if d.Fleetwide {
		p.holds[d.Reason] = d.Message
		return
	}
	if g := s.Sighting; s.Record == nil && g != nil && g.Health == remediations.HealthReady {
		return // it waits for nothing, whatever its alert still says
	}
	if d.Record == nil || wrote {
		id := ""
		if s.Record != nil {
			id = s.Record.ID
		}
		p.tellPod(s, m, id+"/"+string(d.Reason), Event{Warning: true, Reason: "RepairHeld", Action: string(d.Reason), Note: string(d.Reason) + ": " + d.Message})
	}
}

// approve lets the approval go out.
func (p *passing) approve(s *remediations.SidecarState, m *targetMemory, d remediations.Decision) {
	r := d.Record
	intent, key := *r.Intent, s.Key
	a := Approval{Provider: d.Policy.Plan[r.Step.Index].Provider, Pod: *r.Pod, Node: s.Node.Name, Task: intent.Task}
	p.send(calling{
		of: sidecarOn(s.Node, key), step: r.Step.Name, attempt: intent.ID,
		about: []any{"pod", r.Pod.String(), "task", intent.Task},
		lets:  func(_ context.Context, live *corev1.Node) error { return p.core.mayStillApprove(live, key, intent.ID) },
		act: func(ctx context.Context, mayStill func() error) (remediations.CallOutcome, error) {
			return p.Sidecars.Approve(ctx, a, mayStill)
		},
	}, &m.repairMemory)
}

func (p *passing) countSidecar(s *remediations.SidecarState, d remediations.Decision, wrote bool) {
	r := s.Record
	switch {
	case d.Record != nil && wrote:
		r = d.Record
	case wrote && (d.Verb == remediations.End || d.Verb == remediations.Drop):
		r = nil
	}
	p.tallied(r, d)
	if r != nil && r.Phase == remediations.Exhausted && len(p.tally.sidecars) < sidecarsNamed {
		p.tally.sidecars[s.Pod.String()] = s.Node.Name
	}
}
