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

// slotYoung is longer than the lifetime of an intent and the time of a write to the API server
// together.
const slotYoung = 30 * time.Second

// sweep frees slots whose node shows no repair in flight: the intent was never written, or the
// release was lost. It reads the Node from the API server first, because the cache may be behind.
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
			continue // the machine is being replaced: the ledger has the repair
		}
		// A replica that lost leadership after it took the slot may still write its intent. So a
		// young slot stays.
		if replaced || ((stuck || !occupied(live, p.Config.Registry.ReadJournal(live), slot)) && p.now.Sub(slot.Since) > slotYoung) {
			p.Log.Info("freeing a slot that no repair occupies", "node", slot.Node, "repair", slot.Repair, "policy", slot.Policy, "nodeGone", gone)
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

// unknownSlot reports once that a slot is kept, because this version takes none for its kind. The
// version that took the slot frees it, or a person does.
func (p *pass) unknownSlot(slot ledger.Slot) {
	key := string(slot.Kind) + "/" + slot.Node + "/" + slot.Repair
	if p.unknownSlots[key] {
		return
	}
	p.unknownSlots[key] = true
	p.Log.Error(nil, "the ledger has a slot of a kind that this version of Drydock does not know; the slot is kept", "kind", slot.Kind, "node", slot.Node, "repair", slot.Repair)
	p.Events.Event("", Event{Warning: true, Reason: "SlotUnknown", Action: slot.Repair, Note: fmt.Sprintf("the ledger has a slot of the kind %.40q for Node %s, repair %s, which this version of Drydock does not know; the slot counts until the version that took it frees it", slot.Kind, slot.Node, slot.Repair)})
}

// stuck reports whether other repairs need not wait for this slot. The repair's deadline has long
// passed, its end cannot be written on the Node, and no call is under way.
func (m *memory) stuck(now time.Time, j remediations.Journal, slot ledger.Slot) bool {
	r := j.Record
	return slot.Kind == "" && m != nil && r != nil && r.ID == slot.Repair && r.Phase.InFlight() && m.writes.lasting(now) && m.work == nil &&
		(m.call == nil || m.call.Outcome != "") && now.Sub(r.Deadline) > remediations.OverdueFor
}

// occupied reports whether the slot's repair is in flight according to the Node. If the record
// cannot be read, the phase label decides.
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

// superseded reports the end of a repair whose Node was deleted during the repair. A new Node with
// the same name starts with the counts of its machine. The ledger also remembers the interrupted
// attempt for the machine. superseded returns false if that could not be saved.
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

// recordGone reports a repair that had a slot, did not end, and is no longer on its Node. What it
// changed there stays, especially a cordon, and nothing else would report that.
func (p *pass) recordGone(slot ledger.Slot, j remediations.Journal) {
	if slices.ContainsFunc(j.History, func(e remediations.Entry) bool { return e.ID == slot.Repair || !e.Ended.Before(slot.Since) }) {
		return // the repair has ended, or was reset
	}
	if j.UnderWay(slot.Repair) != nil {
		return // a leader died between the slot and the intent, and the repair waits
	}
	p.Events.Event(slot.Node, Event{
		Warning: true, Reason: "RepairSuperseded", Action: slot.Repair, Of: Trail{Repair: slot.Repair, Policy: slot.Policy},
		Note: fmt.Sprintf("repair %s by policy %s: its record is not on Node %s (attempt %s): it was never written, or it was removed; Drydock does nothing more for it. If it had begun, what it set on the node stays: a cordon, and what announce puts there. Make sure that the node is well before you take that away",
			slot.Repair, slot.Policy, slot.Node, slot.Attempt),
	})
}

// unreserve restores the ledger from before a slot was taken for an intent that was certainly not
// written. So no repair waits for one that does not continue. unreserve returns whether it restored
// the ledger. If the intent may be written, the slot stays until sweep has seen that no repair came
// of it.
func (p *pass) unreserve(before *ledger.Ledger, node string) bool {
	if !p.remember(node).unwritten || p.save(before.Clone()) != nil {
		return false
	}
	p.again = true // another repair may wait for the slot
	return true
}

// vacate removes the Node from the count. If another repair has a slot under this name, the Node
// stays: that repair is replacing the earlier machine.
func (p *pass) vacate(node string) {
	if p.ledger == nil || p.ledger.SlotOf(node) == nil {
		p.fleet.Vacate(node)
	}
}
