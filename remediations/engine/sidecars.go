package engine

import (
	"context"
	"errors"
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

// sidecarMemory is what the engine remembers of one sidecar between passes. All of it may be lost.
type sidecarMemory struct {
	sighting *remediations.Sighting
	looking  bool
	call     *remediations.Call
	// wellSince is the first of the sightings in a row that found it ready.
	wellSince time.Time
	newID     string
	told      map[string]bool
	// waits says that people were told that it waits.
	waits bool
	pass  int
}

// sidecarsNamed bounds the exhausted sidecars that the ledger names.
const sidecarsNamed = 20

// sidecars decides about the sidecars of the node's pods, one after the other, and carries the decisions out.
func (p *passing) sidecars(n *corev1.Node) {
	for _, sc := range p.Config.Sidecars(p.journal(n)) {
		if m := p.remember(n.Name); m.written != nil {
			n = m.written // by the one before
		}
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

func (p *passing) sidecarState(n *corev1.Node, sc remediations.Sidecar) *remediations.SidecarState {
	p.now = p.Clock.Now()
	k := n.Name + "|" + sc.Key
	m := p.sidecarMemory[k]
	if m == nil {
		m = &sidecarMemory{told: map[string]bool{}, waits: sc.Record != nil}
		p.sidecarMemory[k] = m
	}
	m.pass = p.passes
	m.forgetTorn(p.now)
	state := p.state(n)
	sc.Record = state.Journal.Sidecars[sc.Key]
	if m.newID == "" || state.Journal.Knows(m.newID) {
		m.newID = p.NewID()
	}
	state.Call, state.NewID, state.WellSince = m.call, m.newID, m.wellSince
	busy := p.busySidecars
	if p.Config.SidecarTakesPlace(sc.Record, p.sidecarsCounted) {
		busy--
	}
	return &remediations.SidecarState{State: state, Sidecar: sc, Sighting: m.sighting, Busy: busy, NewTask: p.NewTask()}
}

func (p *passing) carrySidecar(s *remediations.SidecarState, d remediations.Decision) {
	m := p.sidecarMemory[s.Node.Name+"|"+s.Key]
	switch {
	case !d.Well:
		m.wellSince = time.Time{}
	case m.wellSince.IsZero():
		m.wellSince = s.Sighting.At
	}
	if d.Ask.Alerts {
		p.askAlerts(p.remember(s.Node.Name))
	}
	if d.Ask.Sighting {
		p.sight(m, s, d)
	}
	if !d.Recheck.IsZero() && d.Recheck.Before(p.next) {
		p.next = d.Recheck
	}
	was := s.Record
	wrote := p.putSidecar(s, d)
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

// putSidecar writes what the decision asks to be written, and says whether it was.
func (p *passing) putSidecar(s *remediations.SidecarState, d remediations.Decision) bool {
	c := NodeChange{Annotations: map[string]*string{}}
	for _, k := range append(d.Prune, d.Consume...) {
		if _, ok := s.Node.Annotations[k]; ok {
			c.Annotations[k] = nil
		}
	}
	switch {
	case d.Record != nil:
		value := d.Record.Encode()
		c.Annotations[s.Key] = &value
	case d.Verb == remediations.End || d.Verb == remediations.Drop:
		c.Annotations[s.Key] = nil
	}
	if d.Ended != nil {
		history := remediations.EncodeHistory(s.Journal.History, *d.Ended)
		c.Annotations[remediations.HistoryKey] = &history
	}
	if len(c.Annotations) == 0 {
		return false
	}
	_, err := p.write(p.ctx, s.Node, c)
	if err != nil {
		p.failed = p.failed || (!errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound))
	}
	return err == nil
}

func (p *passing) keepSidecar(s *remediations.SidecarState, m *sidecarMemory, d remediations.Decision, wrote bool) {
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

// approve lets the approval go out beside the loop, as begin does for a node's step.
func (p *passing) approve(s *remediations.SidecarState, m *sidecarMemory, d remediations.Decision) {
	r := d.Record
	intent, key, node, step := *r.Intent, s.Key, s.Node.Name, r.Step.Name
	m.call = &remediations.Call{IntentID: intent.ID}
	p.underway++
	p.Log.Info("approving", "pod", r.Pod.String(), "node", node, "intent", intent.ID, "task", intent.Task)
	var look lookedLast
	mayStill := look.over(p.mayStill(node, func(_ context.Context, live *corev1.Node) error { return p.core.mayStillApprove(live, key, intent.ID) }))
	a := Approval{Provider: d.Policy.Plan[r.Step.Index].Provider, Pod: *r.Pod, Node: node, Task: intent.Task}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.CallTimeout)
		defer cancel()
		outcome, err := p.Sidecars.Approve(ctx, a, mayStill)
		call := remediations.Call{IntentID: intent.ID, Outcome: outcome, Withheld: look.withheld()}
		if err != nil {
			call.Why = err.Error()
		}
		p.calls <- called{node: node, sidecar: key, call: call, step: step}
	}()
}

func (p *passing) countSidecar(s *remediations.SidecarState, d remediations.Decision, wrote bool) {
	r := s.Record
	switch {
	case d.Record != nil && wrote:
		r = d.Record
	case wrote && (d.Verb == remediations.End || d.Verb == remediations.Drop):
		r = nil
	}
	if r != nil {
		p.tally.repairs[[2]string{r.Policy, string(r.Phase)}]++
		if r.Phase == remediations.Exhausted && len(p.tally.sidecars) < sidecarsNamed {
			p.tally.sidecars[s.Pod.String()] = s.Node.Name
		}
	}
	if d.Verb == remediations.Keep && d.Policy != nil {
		p.tally.holds[[2]string{d.Policy.Name, string(d.Reason)}]++
	}
}

// forgetSidecars drops what is remembered of sidecars that this pass did not meet.
func (e *Engine) forgetSidecars() {
	for k, m := range e.sidecarMemory {
		if m.pass != e.passes && !m.looking && (m.call == nil || m.call.Outcome != "") {
			delete(e.sidecarMemory, k)
		}
	}
}
