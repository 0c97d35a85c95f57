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

// slotYoung is longer than an intent is good for, and than a write to the API server may take, together.
const slotYoung = 30 * time.Second

// sweep frees slots whose node shows no repair in flight: the intent was never written, or the release was lost. The
// Node is read from the API server first, since the cache may be behind.
func (p *pass) sweep() {
	if p.ledger == nil || len(p.ledger.Slots) == 0 {
		return
	}
	outlives := map[string]bool{}
	for _, o := range p.ledger.Orphans {
		outlives[o.Record.ID] = true
	}
	for _, slot := range p.ledger.Slots {
		if slot.Kind != remediations.KindNode && kindOf(slot.Kind) == nil {
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
			continue // its machine is being replaced: the ledger has the repair
		}
		// A leader that lost its lead after it took the slot may yet write its intent: a young slot is left to it.
		if replaced || ((stuck || !occupied(live, p.Config.Registry.ReadJournal(live), slot)) && p.now.Sub(slot.Since) > slotYoung) {
			p.Log.Info("freeing a slot that no repair occupies", "node", slot.Node, "repair", slot.Repair, "policy", slot.Policy, "nodeGone", gone)
			if replaced {
				if !p.superseded(slot) {
					return
				}
			} else if !stuck {
				p.recordGone(slot, p.Config.Registry.ReadJournal(live))
			}
			if k := kindOf(slot.Kind); k != nil {
				p.releaseOf(k, slot.Node, slot.Repair)
				return
			}
			p.release(slot.Node, slot.Repair)
			return // the ledger is another one now; the next pass goes on
		}
	}
}

// unknownSlot says once that a slot is kept whose kind this version does not know: whoever took it frees it, or a person does.
func (p *pass) unknownSlot(slot ledger.Slot) {
	key := string(slot.Kind) + "/" + slot.Node + "/" + slot.Repair
	if p.unknownSlots[key] {
		return
	}
	p.unknownSlots[key] = true
	p.Log.Error(nil, "the ledger has a slot of a kind that this version of Drydock does not know; the slot is kept", "kind", slot.Kind, "node", slot.Node, "repair", slot.Repair)
	p.Events.Event("", Event{Warning: true, Reason: "SlotUnknown", Action: slot.Repair, Note: fmt.Sprintf("the ledger has a slot of the kind %.40q for Node %s, repair %s, which this version of Drydock does not know; the slot counts until the version that took it frees it", slot.Kind, slot.Node, slot.Repair)})
}

// stuck says that the slot's repair is long over by its record, that nobody can write so on the Node, and that no call is
// under way: the others need not wait for it.
func (m *memory) stuck(now time.Time, j remediations.Journal, slot ledger.Slot) bool {
	r := j.Record
	return slot.Kind == "" && m != nil && r != nil && r.ID == slot.Repair && r.Phase.InFlight() && m.writes.lasting(now) && m.work == nil &&
		(m.call == nil || m.call.Outcome != "") && now.Sub(r.Deadline) > remediations.OverdueFor
}

// occupied says that the slot's repair is in flight by what the Node says, or may be where that cannot be read.
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

// superseded tells how a repair ended whose Node was deleted under it. A Node that has its name by now is another one,
// and starts with what was counted against its machine; so is the attempt that was under way. It says whether that is durable.
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

// recordGone tells that a repair which had its slot is on its Node no more, and did not end: what it did there, a cordon above all, stays,
// and nobody else would say so.
func (p *pass) recordGone(slot ledger.Slot, j remediations.Journal) {
	if slices.ContainsFunc(j.History, func(e remediations.Entry) bool { return e.ID == slot.Repair || !e.Ended.Before(slot.Since) }) {
		return // it has ended, or was reset
	}
	p.Events.Event(slot.Node, Event{
		Warning: true, Reason: "RepairSuperseded", Action: slot.Repair, Of: Trail{Repair: slot.Repair, Policy: slot.Policy},
		Note: fmt.Sprintf("repair %s by policy %s: its record is not on Node %s (attempt %s): it was never written, or it was removed; Drydock does nothing more for it. If it had begun, what it set on the node stays: a cordon, and what announce puts there. Make sure that the node is well before you take that away",
			slot.Repair, slot.Policy, slot.Node, slot.Attempt),
	})
}

// unreserve puts the ledger back to what it was before a slot was taken for an intent that was certainly not written, so that nobody
// waits for a repair that does not go on. It says whether it did: what may have been written keeps its slot until sweep has seen that
// nothing came of it.
func (p *pass) unreserve(before *ledger.Ledger, node string) bool {
	if !p.remember(node).unwritten || p.save(before.Clone()) != nil {
		return false
	}
	p.again = true // somebody may wait for the slot
	return true
}

// vacate takes the Node out of the count, unless another repair has a slot under its name: that of the machine before, which is being
// replaced.
func (p *pass) vacate(node string) {
	if p.ledger == nil || p.ledger.SlotOf(node) == nil {
		p.fleet.Vacate(node)
	}
}

// release frees the repair's slot; a failure leaves it to sweep.
func (p *pass) release(node, repair string) {
	if p.ledger == nil {
		p.fleet.Vacate(node)
		return
	}
	l := p.ledger.Clone()
	if l.Release(repair) {
		_ = p.save(l)
	}
	p.vacate(node)
	p.again = true // somebody may have waited for the slot
}
