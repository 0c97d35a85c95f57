package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// slotYoung is how old a slot in the ledger may be without an intent on its Node. It is longer than
// the lifetime of an intent and a write to the API server together.
const slotYoung = 30 * time.Second

// sweep frees slots whose Node shows no repair in progress. It first reads the Node from the API
// server, because the cache may be behind.
func (p *pass) sweep() {
	if p.ledger == nil || len(p.ledger.Slots) == 0 {
		return
	}
	outlives := map[string]bool{}
	for _, o := range p.ledger.Orphans {
		outlives[o.Record.ID] = true
	}
	for _, slot := range p.ledger.Slots {
		k := kindOf(slot.Kind)
		if k == nil || k.slots == nil {
			p.unknownSlot(slot)
			continue
		}
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
		replaced := gone || (string(live.UID) != slot.UID && !occupied(live, p.Config.Registry.ReadJournal(live), slot))
		if replaced && outlives[slot.Repair] {
			continue // the machine is being replaced, and the ledger has its repair as an orphan
		}
		// A young slot stays: the replica that took it may have lost the leadership, and may still
		// write the intent.
		if replaced || ((stuck || !occupied(live, p.Config.Registry.ReadJournal(live), slot)) && p.now.Sub(slot.Since) > slotYoung) {
			p.Log.Info("freeing a slot of the ledger that no repair uses", "node", slot.Node, "repair", slot.Repair, "policy", slot.Policy, "nodeGone", gone)
			if replaced {
				if !p.superseded(slot) {
					return
				}
			} else if !stuck {
				p.recordGone(slot, p.Config.Registry.ReadJournal(live))
			}
			p.release(k, slot.Node, slot.Repair)
			return // the ledger has changed; the next pass continues
		}
	}
}

// unknownSlot reports, once, a slot for a kind of target that this version does not know. The slot
// stays: the version that took it, or a person, must free it.
func (p *pass) unknownSlot(slot ledger.Slot) {
	key := string(slot.Kind) + "/" + slot.Node + "/" + slot.Repair
	if p.unknownSlots[key] {
		return
	}
	p.unknownSlots[key] = true
	p.Log.Error(nil, "the ledger has a slot for a kind of target that this version of Drydock does not know; the slot is kept", "kind", slot.Kind, "node", slot.Node, "repair", slot.Repair)
	p.Events.Event("", Event{Warning: true, Reason: "SlotUnknown", Action: slot.Repair, Note: fmt.Sprintf("the ledger has a slot for the kind of target %.40q, which this version of Drydock does not know (Node %s, repair %s); the slot counts for the limits until the version that took it frees it", slot.Kind, slot.Node, slot.Repair)})
}

// stuck reports whether the slot may be freed although the Node still shows the repair as running:
// its deadline passed long ago, its end cannot be written, and no call is running.
func (m *memory) stuck(now time.Time, j remediations.Journal, slot ledger.Slot) bool {
	r := j.Record
	return slot.Kind == "" && m != nil && r != nil && r.ID == slot.Repair && r.Phase.InFlight() && m.writes.lasting(now) && m.work == nil &&
		(m.call == nil || m.call.Outcome != "") && now.Sub(r.Deadline) > remediations.OverdueFor
}

// occupied uses the phase label if the repair's record cannot be read.
func occupied(n *corev1.Node, j remediations.Journal, slot ledger.Slot) bool {
	r, key := j.Record, remediations.NodeRepairKey
	if slot.Kind == remediations.KindLocation {
		r, key = j.Location(), remediations.LocationKey
	}
	if j.CannotRead(key) {
		return slot.Of(n) && remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight()
	}
	return r != nil && r.Phase.InFlight() && r.ID == slot.Repair
}

// superseded first saves the interrupted attempt of a deleted Node, because the same machine may
// register again and then continues the plan. If it returns false, nothing was saved.
func (p *pass) superseded(slot ledger.Slot) bool {
	if l := p.ledger.Clone(); l.Interrupted(p.Config, slot, p.now) && p.save(l) != nil {
		return false
	}
	p.metrics.ended.WithLabelValues(slot.Policy, string(remediations.OutcomeSuperseded)).Inc()
	p.Events.Event("", Event{
		Warning: true, Reason: "RepairSuperseded", Action: slot.Repair, Of: Trail{Repair: slot.Repair, Policy: slot.Policy},
		Note: fmt.Sprintf("repair %s by policy %s: Node %s was deleted while it was under repair (%s); nothing more is done for it", slot.Repair, slot.Policy, slot.Node, slot.Attempt),
	})
	return true
}

// recordGone reports a repair whose record is no longer on its Node. What the repair changed stays
// there, especially a cordon, and only this Event reports it.
func (p *pass) recordGone(slot ledger.Slot, j remediations.Journal) {
	if slices.ContainsFunc(j.History, func(e remediations.Entry) bool { return e.ID == slot.Repair || !e.Ended.Before(slot.Since) }) {
		return // nothing to report: the repair has ended, or a person has reset it
	}
	if j.UnderWay(slot.Repair) != nil {
		return // nothing to report: a leader died between taking the slot and writing the intent, and the repair waits on the Node
	}
	p.Events.Event(slot.Node, Event{
		Warning: true, Reason: "RepairSuperseded", Action: slot.Repair, Of: Trail{Repair: slot.Repair, Policy: slot.Policy},
		Note: fmt.Sprintf("repair %s by policy %s: Node %s does not have the repair's record (attempt %s): the record was never written, or it was removed. Drydock does nothing more for this repair. If the repair had begun, its cordon and the annotations of announce are still on the Node. Make sure that the node is healthy before you remove them",
			slot.Repair, slot.Policy, slot.Node, slot.Attempt),
	})
}

// unreserve frees a slot if its intent was certainly not written. Otherwise the slot stays until
// sweep finds no repair on the Node.
func (p *pass) unreserve(before *ledger.Ledger, node string) bool {
	if !p.remember(node).unwritten || p.save(before.Clone()) != nil {
		return false
	}
	p.again = true // another repair may wait for the slot
	return true
}

// vacate keeps the Node counted if the ledger has another slot for its name: that repair is
// replacing the Node's earlier machine.
func (p *pass) vacate(node string) {
	if p.ledger == nil || p.ledger.SlotOf(node) == nil {
		p.fleet.Vacate(node)
	}
}
