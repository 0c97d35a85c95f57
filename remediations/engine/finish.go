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
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (p *passing) end(s *lifecycle.State, d lifecycle.Decision) {
	n, e := s.Node, d.Ended
	if e.Outcome == remediations.OutcomeExhausted && !p.finished(e) {
		return
	}
	if p.put(s, d) == nil {
		return
	}
	if r := s.Journal.Record; r != nil && r.Silence != "" && p.Silencer != nil {
		p.Beside(func() { p.speakAgain(r.Silence) })
	}
	p.ended(e)
	p.tell(n.Name, e.ID, Event{
		Warning: e.Outcome == remediations.OutcomeExhausted, Reason: "Repair" + string(e.Outcome), Action: e.ID, Of: trailOfEntry(e),
		Note: endNote(e, "", d.Message),
	})
	if e.Outcome == remediations.Observed { // the ledger knows nothing of it
		p.again = true // somebody may have waited for the place
		return
	}
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	changed := l.Release(n.Name)
	if len(e.Steps) > 0 { // of a repair that did nothing, nothing can be said of its policy
		finished, cured := l.Finished(e.Policy, e.ID, e.Outcome), l.Cured(ledger.Machine(n), e, p.fleet.Trials(e.ID))
		changed = changed || finished || cured
	}
	if changed {
		_ = p.save(l) // a failure is logged, and the ledger read again
	}
	p.fleet.Vacate(n.Name)
	p.again = true // somebody may have waited for the slot
}

// finished counts a plan that ran out, before the Node says so: if the ledger cannot be saved the end is decided again, and
// it is counted once.
func (p *passing) finished(e *remediations.Entry) bool {
	if p.ledger == nil {
		p.failed = true
		return false
	}
	l := p.ledger.Clone()
	return !l.Finished(e.Policy, e.ID, e.Outcome) || p.save(l) == nil
}

// relapsed counts a cure that did not last: as failed for its policy, and for the breakers that it was on trial for, which
// open again. The ledger goes first, so that a crash counts it once. Then the decision is made again.
func (p *passing) relapsed(s *lifecycle.State, c *ledger.Cure) {
	l := p.ledger.Clone()
	l.Relapse(ledger.Machine(s.Node), *c)
	p.fleet.Reopen(c.Trials, p.now)
	if p.save(l) != nil {
		return
	}
	p.metrics.ended.WithLabelValues(c.Policy, string(remediations.Relapsed)).Inc()
	history := remediations.EncodeEntries(remediations.MarkRelapsed(s.Journal.History, c.Repair))
	if len(s.Journal.History) > 0 {
		_, _ = p.write(p.ctx, s.Node, NodeChange{Annotations: map[string]*string{remediations.HistoryKey: &history}}) // else with the next step
	}
	p.Events.Event(s.Node.Name, Event{
		Warning: true, Reason: "RepairRelapsed", Action: c.Repair, Of: Trail{Repair: c.Repair, Policy: c.Policy},
		Note: fmt.Sprintf("repair %s by policy %s ended at %s, and its alert has come back: the plan goes on after %s", c.Repair, c.Policy, c.At.Format(time.RFC3339), c.Step),
	})
	p.again = true
}

// endNote says how a repair ended, and what it did. whose says of what target it was; empty: of the node.
func endNote(e *remediations.Entry, whose, message string) string {
	did := strings.Join(e.Steps, ", ")
	if e.Outcome == remediations.Observed {
		did = "nothing was done"
	}
	return fmt.Sprintf("repair %s%s by policy %s after %s (%s): %s", e.ID, whose, e.Policy, e.Ended.Sub(e.Began).Round(time.Second), did, message)
}

// ended counts a repair that is over.
func (p *passing) ended(e *remediations.Entry) {
	p.metrics.ended.WithLabelValues(e.Policy, string(e.Outcome)).Inc()
	p.metrics.duration.WithLabelValues(e.Policy, string(e.Outcome)).Observe(e.Ended.Sub(e.Began).Seconds())
}

// speakAgain ends the repair's silence; one that could not be ended has an end of its own.
func (p *passing) speakAgain(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.CallTimeout)
	defer cancel()
	if err := p.Silencer.Expire(ctx, id); err != nil {
		p.Log.Error(err, "a repair's silence could not be ended; it ends by itself", "silence", id)
	}
}

// glass keeps in the ledger since when the glass of which node is broken, so that its hour outlives a restart.
func (p *passing) glass() {
	if p.ledger == nil {
		return
	}
	was, is, reads := p.ledger.Status.Glass, map[string]ledger.Glass{}, breakGlassReads
	for _, member := range p.roster.Glass() {
		n := member.Node
		glass, why := was[n.Name], lifecycle.GlassWhy(n)
		if glass.Since.IsZero() || glass.Why != why {
			p.announceBreakGlass(n, why, &reads)
			// A clock that is wrong would mend it at once, or never: the hour begins when the leases agree with it.
			if p.readHeartbeats(); p.heartbeats == nil || p.heartbeats.ReadAt.Before(p.now) || p.heartbeats.Blind() != "" {
				continue
			}
			glass = ledger.Glass{Since: p.now.UTC().Truncate(time.Second), Why: why}
		}
		is[n.Name] = glass
	}
	if maps.Equal(was, is) {
		return
	}
	l := p.ledger.Clone()
	l.Status.Glass = is
	_ = p.save(l)
}

// breakGlassReads bounds the Nodes that one pass reads for announceBreakGlass: a person may annotate all of them at once.
const breakGlassReads = 10

// announceBreakGlass tells people that break-glass is set on a node. What it says comes from the stored Node, which the
// API server has checked, never from an AdmissionReview, which anybody can send who reaches the webhook's port.
func (p *passing) announceBreakGlass(n *corev1.Node, why string, reads *int) {
	key := remediations.BreakGlassKey + "=" + why
	if p.remember(n.Name).told[key+"|GlassBroken"] {
		return
	}
	by, at := "", p.now
	if *reads > 0 {
		*reads--
		manager, changed, err := p.Journal.SetBy(p.ctx, n.Name, remediations.BreakGlassKey)
		if err != nil {
			p.Log.Error(err, "who set break-glass cannot be read; the Event leaves it out", "node", n.Name)
		} else if manager != "" {
			by, at = fmt.Sprintf(" by the field manager %q at %s", manager, changed.Format(time.RFC3339)), changed
		}
	}
	p.tell(n.Name, key, Event{
		Warning: true, Reason: "GlassBroken", Action: "BreakGlass at " + at.UTC().Format(time.RFC3339),
		Note: fmt.Sprintf("%s was set%s: %s. While it is set, Drydock starts nothing new on this node, and admission allows every change but those of Drydock's own keys. The API server's audit log names the user",
			remediations.BreakGlassKey, by, why),
	})
}

// save writes the ledger with the breakers as this pass has them.
func (p *passing) save(l *ledger.Ledger) error {
	l.Status.Breakers = maps.Clone(p.fleet.Breakers)
	return p.saveLedger(p.ctx, l, p.ledgerAt)
}

func (p *passing) reset(s *lifecycle.State, d lifecycle.Decision) {
	// The counts go first: until the record goes the wish stands on the Node, so what a crash leaves undone is done again.
	l := p.ledger.Clone() // without a ledger nothing is reset
	l.Release(s.Node.Name)
	l.Forget(ledger.Machine(s.Node))
	for _, policy := range d.Allow {
		l.Allow(policy)
	}
	if p.save(l) != nil || p.put(s, d) == nil {
		return
	}
	p.tell(s.Node.Name, "", Event{Reason: "RepairCancelled", Action: "Reset", Note: d.Message, Of: trailOf(s.Journal.Record)})
	p.fleet.Vacate(s.Node.Name)
}

// stop stops a policy whose provider refuses the account.
func (p *passing) stop(d lifecycle.Decision) {
	if d.Stop == "" || d.Policy == nil || p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	l.Stop(d.Policy.Name, d.Stop)
	if p.save(l) == nil {
		p.Events.Event("", Event{Warning: true, Reason: "PolicyStopped", Of: Trail{Policy: d.Policy.Name}, Action: d.Policy.Name, Note: fmt.Sprintf("policy %s is stopped: %s", d.Policy.Name, d.Stop)})
	}
}

// allow lets stopped policies go on; it says whether that is durable, so that the wish may be taken off the Node.
func (p *passing) allow(d lifecycle.Decision) bool {
	l := p.ledger.Clone()
	for _, policy := range d.Allow {
		l.Allow(policy)
	}
	return p.save(l) == nil
}

// release frees the node's slot; a failure leaves it to sweep.
func (p *passing) release(node string) {
	p.fleet.Vacate(node)
	if p.ledger == nil {
		return
	}
	l := p.ledger.Clone()
	if l.Release(node) {
		_ = p.save(l)
	}
	p.again = true // somebody may have waited for the slot
}

// slotYoung is longer than an intent is good for, and than a write to the API server may take, together.
const slotYoung = 30 * time.Second

// sweep frees slots whose node shows no repair in flight: the intent was never written, or the release was lost. The
// Node is read from the API server first, since the cache may be behind.
func (p *passing) sweep() {
	if p.ledger == nil || len(p.ledger.Slots) == 0 {
		return
	}
	outlives := map[string]bool{}
	for _, o := range p.ledger.Orphans {
		outlives[o.Record.ID] = true
	}
	for _, slot := range p.ledger.Slots {
		m, n := p.memory[slot.Node], p.roster.Member(slot.Node)
		stuck := n != nil && m.stuck(p.now, p.journal(n.Node), slot)
		if (n != nil && n.InFlight && !stuck && occupied(n.Node, p.journal(n.Node), slot)) || (m != nil && m.written != nil) {
			continue
		}
		live, err := p.Fleet.Node(p.ctx, slot.Node)
		gone := errors.Is(err, ErrNotFound)
		if err != nil && !gone {
			p.failed = true
			continue
		}
		replaced := gone || string(live.UID) != slot.UID
		if replaced && outlives[slot.Repair] {
			continue // its machine is being replaced: the ledger has the repair
		}
		// A leader that lost its lead after it took the slot may yet write its intent: a young slot is left to it.
		if replaced || ((stuck || !occupied(live, p.Config.Registry.ReadJournal(live), slot)) && p.now.Sub(slot.Since) > slotYoung) {
			p.Log.Info("freeing a slot that no repair occupies", "node", slot.Node, "repair", slot.Repair, "policy", slot.Policy, "nodeGone", gone)
			if replaced {
				p.superseded(slot)
			}
			if k := p.kindOf(slot.Kind); k != nil {
				p.releaseOf(k, slot.Node)
				return
			}
			p.release(slot.Node)
			return // the ledger is another one now; the next pass goes on
		}
	}
}

// stuck says that the slot's repair is long over by its record, that nobody can write so on the Node, and that no call is
// under way: the others need not wait for it.
func (m *memory) stuck(now time.Time, j remediations.Journal, slot ledger.Slot) bool {
	r := j.Record
	return slot.Kind == "" && m != nil && r != nil && r.ID == slot.Repair && r.Phase.InFlight() && m.writes.lasting(now) && m.work == nil &&
		(m.call == nil || m.call.Outcome != "") && now.Sub(r.Deadline) > remediations.OverdueFor
}

// occupied says that a repair like the slot's is in flight by what the Node says, or may be where that cannot be read.
func occupied(n *corev1.Node, j remediations.Journal, slot ledger.Slot) bool {
	if j.Malformed != nil {
		return remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight()
	}
	r := j.Record
	if slot.Kind == remediations.KindLocation {
		r = j.Records[remediations.LocationKey]
	}
	return r != nil && r.Phase.InFlight()
}

// superseded tells how a repair ended whose Node was deleted under it. A Node that has its name by now is another one,
// and starts with what was counted against its machine.
func (p *passing) superseded(slot ledger.Slot) {
	p.metrics.ended.WithLabelValues(slot.Policy, string(remediations.Superseded)).Inc()
	p.Events.Event("", Event{
		Warning: true, Reason: "RepairSuperseded", Action: slot.Repair, Of: Trail{Repair: slot.Repair, Policy: slot.Policy},
		Note: fmt.Sprintf("repair %s by policy %s: Node %s was deleted while it was under repair (%s); nothing more is done for it", slot.Repair, slot.Policy, slot.Node, slot.Attempt),
	})
}

// settleOnly puts a call's outcome on record and nothing else, for an engine that is stopping.
func (e *Engine) settleOnly(ctx context.Context, c called) error {
	n, err := e.Fleet.Node(ctx, c.of.node)
	if err != nil {
		return err
	}
	s := &lifecycle.State{Config: e.Config, Node: n, Journal: e.Config.Registry.ReadJournal(n), Call: &c.call}
	if change := e.outcomeOf(s, c); change != nil {
		_, err = e.write(ctx, n, *change)
	}
	return err
}

// outcomeOf is what is written of it; nil: nothing.
func (e *Engine) outcomeOf(s *lifecycle.State, c called) *NodeChange {
	if k := e.kindOf(c.of.kind); k != nil {
		for _, one := range e.Config.Subjects(k.of, s.Journal) {
			if r := one.Record; one.Name == c.of.name && r != nil && r.Phase == remediations.Acting && r.Back == nil {
				return change(s, one.Key, k.decide(e, &subject{State: s, Subject: one, of: c.of, m: &targetMemory{}}, e.Clock.Now()))
			}
		}
		return nil // what is put back is put back again by whoever leads next
	}
	if r := s.Journal.Record; r == nil || r.Phase != remediations.Acting || !e.Config.Remediation(r.Step.Name).Once {
		return nil
	}
	return change(s, remediations.NodeRepairKey, e.core.decide(s, e.Clock.Now()))
}

// graceful is how long a stopping engine waits for calls under way, to put their outcomes on record.
const graceful = 5 * time.Second

// finish waits a little for calls under way, so that a restart knows their outcomes. The writes are checked against
// the resourceVersion, so they do no harm where another replica leads already.
func (e *Engine) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	for e.underway > 0 {
		select {
		case c := <-e.calls:
			e.answered(c)
			for errors.Is(e.settleOnly(ctx, c), ErrConflict) && ctx.Err() == nil {
				e.Log.Info("the Node was changed by somebody else in the meantime; the call's outcome is written again", "node", c.of.node)
			}
		case <-ctx.Done():
			return
		}
	}
}
