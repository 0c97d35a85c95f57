package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// passing is one pass over the fleet.
type passing struct {
	*Engine
	ctx   context.Context
	now   time.Time
	fleet *remediations.Fleet
	tally *tally
	// holds are those that lie with the fleet, by reason.
	holds  map[remediations.Reason]string
	next   time.Time
	failed bool
}

// node decides about one node, and carries the decision out.
func (p *passing) node(n *corev1.Node) {
	s := p.state(n)
	d := remediations.Decide(s, p.now)
	if d.Ask.Lease {
		p.readLease(n.Name)
		s = p.state(n)
		d = remediations.Decide(s, p.now)
	}
	m := p.remember(n.Name)
	switch {
	case !d.Well:
		m.wellSince = time.Time{}
	case m.wellSince.IsZero():
		m.wellSince = p.now
	}
	if d.Ask.Alerts {
		if m.lookSince.IsZero() || p.word == nil || !p.word.AskedAt.Before(m.lookSince) {
			m.lookSince = p.now
		}
		p.look(p.ctx)
	}
	if !d.Recheck.IsZero() && d.Recheck.Before(p.next) {
		p.next = d.Recheck
	}
	for _, sentence := range d.Invalid {
		p.tell(n.Name, "", Event{Warning: true, Reason: "AnnotationInvalid", Action: "Refused", Note: sentence})
	}
	p.carry(s, d)
	p.count(s, d)
}

func (p *passing) carry(s *remediations.State, d remediations.Decision) {
	switch d.Verb {
	case remediations.Issue:
		p.issue(s, d)
	case remediations.Keep:
		p.keep(s, d)
	case remediations.Verify:
		if p.put(s, d) != nil {
			p.remember(s.Node.Name).call = nil
			p.tell(s.Node.Name, d.Record.Intent.ID, Event{Reason: "RepairVerifying", Action: d.Record.Intent.ID, Note: d.Message})
		}
	case remediations.End:
		p.end(s, d)
	case remediations.Reset:
		p.reset(s, d)
	case remediations.Drop, remediations.Rest, remediations.Look, remediations.Wait:
		p.put(s, d)
	}
}

// change is the one write that a decision asks for; nil: none.
func change(n *corev1.Node, journal remediations.Journal, d remediations.Decision) *NodeChange {
	c := NodeChange{Annotations: map[string]*string{}, Labels: map[string]*string{}}
	for _, k := range append(d.Prune, d.Consume...) {
		if _, ok := n.Annotations[k]; ok {
			c.Annotations[k] = nil
		}
	}
	switch {
	case d.Record != nil:
		value, phase := d.Record.Encode(), string(d.Record.Phase)
		c.Annotations[remediations.NodeRepairKey], c.Labels[remediations.PhaseLabel] = &value, &phase
	case d.Verb == remediations.Reset:
		for k := range n.Annotations {
			if strings.HasPrefix(k, remediations.RepairPrefix) {
				c.Annotations[k] = nil
			}
		}
		c.Labels[remediations.PhaseLabel] = nil
	case d.Verb == remediations.End || d.Verb == remediations.Drop:
		c.Annotations[remediations.NodeRepairKey], c.Labels[remediations.PhaseLabel] = nil, nil
	}
	if d.Ended != nil {
		history := remediations.EncodeHistory(journal.History, *d.Ended)
		c.Annotations[remediations.HistoryKey] = &history
	}
	if d.Cordon {
		yes := true
		c.Unschedulable = &yes
	}
	if len(c.Annotations) == 0 && len(c.Labels) == 0 && c.Unschedulable == nil {
		return nil
	}
	return &c
}

// put writes what the decision asks to be written; nil: nothing was, and the next pass decides again.
func (p *passing) put(s *remediations.State, d remediations.Decision) *corev1.Node {
	c := change(s.Node, s.Journal, d)
	if c == nil {
		return nil
	}
	if d.Uncordon {
		owned, err := p.Journal.OwnsCordon(p.ctx, s.Node.Name)
		if err != nil {
			p.failed = true
			return nil
		}
		if owned {
			no := false
			c.Unschedulable = &no
		}
	}
	written, err := p.write(p.ctx, s.Node, *c)
	if err != nil {
		p.failed = p.failed || (!errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound))
		return nil
	}
	return written
}

// issue takes the slot, writes the intent, and lets the call go out; each only after the one before is durable.
func (p *passing) issue(s *remediations.State, d remediations.Decision) {
	n, step := s.Node, d.Record.Step
	if remediations.Registry[step.Name].Disruptive {
		l := p.ledger.Clone()
		l.Reserve(p.Config, n, d.Record, p.now)
		if p.saveLedger(p.ctx, l, p.ledgerAt) != nil {
			return
		}
		p.fleet.Occupy(p.Config, n, false)
	}
	if p.put(s, d) == nil {
		return // the slot stays until sweep has seen that nothing came of it
	}
	p.begin(n, d)
	if s.Journal.Record == nil || s.Journal.Record.Intent == nil {
		p.tell(n.Name, d.Record.ID, Event{Reason: "RepairStarted", Action: d.Record.ID, Note: fmt.Sprintf("repair %s by policy %s: %s", d.Record.ID, d.Policy.Name, p.causeOf(s, d.Record))})
	}
	p.tell(n.Name, d.Record.Intent.ID, Event{Warning: true, Reason: "RepairStepIssued", Action: d.Record.Intent.ID, Note: d.Message})
}

// begin lets the call go out beside the loop. It may be made only while this process leads and its intent is young.
func (p *passing) begin(n *corev1.Node, d remediations.Decision) {
	intent, step, since := *d.Record.Intent, d.Record.Step.Name, p.now
	p.remember(n.Name).call = &remediations.Call{IntentID: intent.ID}
	p.underway++
	p.Log.Info("issuing", "node", n.Name, "step", step, "intent", intent.ID)
	mayStill := func() error {
		if p.ctx.Err() != nil {
			return errors.New("this Drydock is stopping, or no longer leads")
		}
		// Both clocks: the monotonic one does not count the time that a suspended machine slept.
		now := p.Clock.Now()
		if now.Sub(since) > intentGood || now.Round(0).Sub(since.Round(0)) > intentGood {
			return fmt.Errorf("the intent is older than %s, so the call was not made", intentGood)
		}
		return nil
	}
	actuator := p.Actuators[step]
	machine := Machine{Node: n.Name, ProviderID: n.Spec.ProviderID}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.CallTimeout)
		defer cancel()
		outcome, err := actuator.Act(ctx, machine, mayStill)
		call := remediations.Call{IntentID: intent.ID, Outcome: outcome}
		if err != nil {
			call.Why = err.Error()
		}
		p.calls <- called{node: n.Name, call: call, step: step}
	}()
}

func (p *passing) causeOf(s *remediations.State, r *remediations.Record) string {
	for _, a := range s.Journal.Alerts {
		if a.Fingerprint == r.Cause.Alert {
			return "alert " + a.Name + " firing since " + a.StartsAt.Format(time.RFC3339)
		}
	}
	return "alert " + r.Cause.Alert
}

func (p *passing) keep(s *remediations.State, d remediations.Decision) {
	n := s.Node
	if d.Reason == remediations.Observing {
		p.fleet.Occupy(p.Config, n, true)
	}
	was := s.Journal.Record
	id := ""
	switch {
	case d.Record != nil:
		id = d.Record.ID
	case was != nil:
		id = was.ID
	}
	wrote := p.put(s, d) != nil
	if wrote && d.Record != nil {
		if was == nil {
			p.tell(n.Name, id, Event{Reason: "RepairPending", Action: id, Note: fmt.Sprintf("repair %s by policy %s: %s", id, d.Record.Policy, p.causeOf(s, d.Record))})
		}
		if was != nil && was.Phase.InFlight() {
			p.release(n.Name)
		}
	}
	if d.Reason.Fleetwide() {
		p.holds[d.Reason] = d.Message
		return
	}
	if d.Record == nil || wrote {
		p.tell(n.Name, id+"/"+string(d.Reason), Event{Warning: true, Reason: "RepairHeld", Action: string(d.Reason), Note: string(d.Reason) + ": " + d.Message})
	}
}

func (p *passing) end(s *remediations.State, d remediations.Decision) {
	n := s.Node
	if p.put(s, d) == nil {
		return
	}
	e := d.Ended
	p.metrics.ended.WithLabelValues(e.Policy, string(e.Outcome)).Inc()
	p.metrics.duration.WithLabelValues(e.Policy, string(e.Outcome)).Observe(e.Ended.Sub(e.Began).Seconds())
	p.Log.Info("a repair ended", "node", n.Name, "repair", e.ID, "outcome", e.Outcome, "why", e.Why)
	p.tell(n.Name, e.ID, Event{
		Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID,
		Note: fmt.Sprintf("repair %s by policy %s after %s (%s): %s", e.ID, e.Policy, e.Ended.Sub(e.Began).Round(time.Second), strings.Join(e.Steps, ", "), d.Message),
	})
	p.release(n.Name)
}

func (p *passing) reset(s *remediations.State, d remediations.Decision) {
	// The counts go first: until the record goes the wish stands on the Node, so what a crash leaves undone is done again.
	if p.ledger != nil {
		l := p.ledger.Clone()
		l.Release(s.Node.Name)
		l.Forget(remediations.Machine(s.Node))
		if p.saveLedger(p.ctx, l, p.ledgerAt) != nil {
			return
		}
	}
	if p.put(s, d) == nil {
		return
	}
	p.tell(s.Node.Name, "", Event{Reason: "RepairCancelled", Action: "Reset", Note: d.Message})
	p.fleet.Vacate(s.Node.Name)
}

// release frees the node's slot; a failure leaves it to sweep.
func (p *passing) release(node string) {
	p.fleet.Vacate(node)
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	if l.Release(node) {
		_ = p.saveLedger(p.ctx, l, p.ledgerAt)
	}
	p.again = true // somebody may have waited for the slot
}

// sweep frees slots whose node shows no repair in flight: the intent was never written, or the release was lost. The
// Node is read from the API server first, since the cache may be behind.
func (p *passing) sweep(nodes []*corev1.Node) {
	if p.ledger == nil {
		return
	}
	flying := map[string]bool{}
	for _, n := range nodes {
		flying[n.Name] = remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight()
	}
	for _, slot := range p.ledger.Slots {
		m := p.memory[slot.Node]
		if flying[slot.Node] || (m != nil && m.written != nil) {
			continue
		}
		live, err := p.Fleet.Node(p.ctx, slot.Node)
		gone := errors.Is(err, ErrNotFound)
		if err != nil && !gone {
			p.failed = true
			continue
		}
		if gone || remediations.InFlight(live) == nil {
			p.Log.Info("freeing a slot that no repair occupies", "node", slot.Node, "repair", slot.Repair, "nodeGone", gone)
			p.release(slot.Node)
			return // the ledger is another one now; the next pass goes on
		}
	}
}

// settleOnly puts a call's outcome on record and nothing else, for an engine that is stopping.
func (e *Engine) settleOnly(ctx context.Context, node string) {
	n, err := e.Fleet.Node(ctx, node)
	if err != nil {
		return
	}
	s := &remediations.State{Config: e.Config, Node: n, Journal: remediations.ReadJournal(n), Call: e.remember(node).call}
	if r := s.Journal.Record; r == nil || r.Phase != remediations.Acting {
		return
	}
	if c := change(n, s.Journal, remediations.Decide(s, e.Clock.Now())); c != nil {
		_, _ = e.write(ctx, n, *c)
	}
}

func (p *passing) readLease(node string) {
	renewed, duration, err := p.Fleet.Lease(p.ctx, node)
	if err != nil {
		p.Log.Error(err, "a node's lease cannot be read; without it no cure is proven", "node", node)
		renewed, duration = time.Time{}, 0
	}
	p.remember(node).lease = &remediations.Lease{ReadAt: p.Clock.Now(), RenewedAt: renewed, Duration: duration}
}

// tell sends an Event once for each key of the node; an empty key once for each note.
func (p *passing) tell(node, key string, e Event) {
	m := p.remember(node)
	k := key + "|" + e.Reason
	if key == "" {
		k = e.Note
	}
	if m.told[k] {
		return
	}
	if len(m.told) > 256 {
		m.told = map[string]bool{}
	}
	m.told[k] = true
	p.Events.Event(node, e)
}

func (p *passing) count(s *remediations.State, d remediations.Decision) {
	r := s.Journal.Record
	if d.Record != nil {
		r = d.Record
	} else if d.Verb == remediations.End || d.Verb == remediations.Drop || d.Verb == remediations.Reset {
		r = nil
	}
	if r != nil {
		p.tally.repairs[[2]string{r.Policy, string(r.Phase)}]++
	}
	if d.Verb == remediations.Keep {
		policy := ""
		if d.Policy != nil {
			policy = d.Policy.Name
		}
		p.tally.holds[[2]string{policy, string(d.Reason)}]++
	}
}

// publish sets the gauges, and puts into the ledger what lies with the fleet where that changed.
func (p *passing) publish() {
	blind := p.word.BlindCause(p.Config)
	p.metrics.set(p.Config, p.tally, p.fleet, blind)
	if p.ledger == nil {
		return
	}
	for reason, message := range p.holds {
		if _, told := p.fleetHolds[reason]; !told {
			p.Log.Info("repairs are held", "reason", reason, "message", message)
			p.Events.Event("", Event{Warning: true, Reason: "RepairHeld", Action: string(reason), Note: string(reason) + ": " + message})
		}
	}
	p.fleetHolds = maps.Clone(p.holds)
	status := remediations.LedgerStatus{Breakers: p.fleet.Breakers, Blind: blind, Holds: p.holds}
	p.ledger.Status = status // goes along with the next write, whatever its reason
	if sameStatus(status, p.statusSaved) {
		return
	}
	l := p.ledger.Clone()
	_ = p.saveLedger(p.ctx, l, p.ledgerAt)
}

// sameStatus compares what is worth a write: which scopes are open, whether Drydock is blind, which reasons hold. A
// count that moved, or a share that is still over its limit, is not.
func sameStatus(a, b remediations.LedgerStatus) bool {
	if (a.Blind == "") != (b.Blind == "") || len(a.Breakers) != len(b.Breakers) || len(a.Holds) != len(b.Holds) {
		return false
	}
	for scope, x := range a.Breakers {
		y, ok := b.Breakers[scope]
		if !ok || x.State != y.State || x.LastOver.Sub(y.LastOver) > time.Minute {
			return false
		}
	}
	for r := range a.Holds {
		if _, ok := b.Holds[r]; !ok {
			return false
		}
	}
	return true
}
