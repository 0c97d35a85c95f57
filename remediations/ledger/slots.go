package ledger

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Slot is the place of one disruptive repair in the ledger. It counts against the limits while the
// repair is in flight. The slot of a mesh location does not count against the limits of nodes. In
// such a slot, Node is the leader before the move, and Successor is the leader after the move.
type Slot struct {
	Kind       remediations.Kind `json:"kind,omitempty"`
	Node       string            `json:"node"`
	Successor  string            `json:"successor,omitempty"`
	Location   string            `json:"location,omitempty"`
	Policy     string            `json:"policy"`
	UID        string            `json:"uid,omitempty"`
	ProviderID string            `json:"providerID,omitempty"`
	Zone       string            `json:"zone,omitempty"`
	Pool       string            `json:"pool,omitempty"`
	Repair     string            `json:"repair"`
	Attempt    string            `json:"attempt"`
	Since      time.Time         `json:"since"`
	// Wide means that the step changes the whole cluster. ControlPlane means that the node was a
	// control-plane node when the slot was taken.
	Wide         bool `json:"wide,omitempty"`
	ControlPlane bool `json:"controlPlane,omitempty"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// Begun is a repair with a time: when the repair began on a machine, last moved a leadership, or
// last changed the whole cluster.
type Begun struct {
	Repair string    `json:"repair"`
	At     time.Time `json:"at"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// Orphan is a repair that replaces the machine of a Node. It has everything that Drydock needs to
// finish the repair after the Node is gone.
type Orphan struct {
	Node       string              `json:"node"`
	UID        string              `json:"uid"`
	ProviderID string              `json:"providerID,omitempty"`
	Record     remediations.Record `json:"record"`
	// Unknown has the fields of this entry that a newer Drydock wrote. They are written back
	// unchanged.
	Unknown Unknown `json:"-"`
}

// Machine returns the key of a Node's machine in the ledger. The key is the Node's providerID, or
// its name if it has none. The providerID stays the same when the machine registers again.
func Machine(n *corev1.Node) string {
	if n.Spec.ProviderID != "" {
		return n.Spec.ProviderID
	}
	return n.Name
}

// Reserve takes a slot for an attempt of the repair, or changes the repair's slot to its next
// attempt. It also records that the repair has begun on its machine. A mesh leader's repair is
// recorded for its location instead. Reserve does not check the limits, because Decide has done so.
func (l *Ledger) Reserve(c *remediations.Config, n *corev1.Node, r *remediations.Record, now time.Time) {
	if r.Location != "" {
		l.reserveMove(c, n, r, now)
		return
	}
	slots, orphans := l.Slots, l.Orphans
	l.Release(r.ID)
	// This also frees an old slot of the machine. A process leaves such a slot if it ends after it
	// took the slot and before it wrote the intent on the Node. The next process starts the repair
	// with a new id, so Release(r.ID) does not find the old slot.
	l.releaseSlot(n)
	since := remediations.Instant(now)
	slot := nodeSlot(c, n, r, since)
	slot.Unknown = unknownOf(slots, r.ID)
	l.Slots = append(l.Slots, slot)
	if slot.Wide {
		l.widened(r.ID, since)
	}
	m := Machine(n)
	if !slices.ContainsFunc(l.Repairs[m], func(b Begun) bool { return b.Repair == r.ID }) {
		l.Repairs[m] = append(l.Repairs[m], Begun{Repair: r.ID, At: since})
	}
	if c.Remediation(r.Step.Name).Replaces {
		o := orphan(n, r)
		if i := slices.IndexFunc(orphans, func(o Orphan) bool { return o.Record.ID == r.ID }); i >= 0 {
			o.Unknown = orphans[i].Unknown
		}
		l.Orphans = append(l.Orphans, o)
	}
	l.prune(c, now)
}

// unknownOf returns the fields of the repair's slot that a newer Drydock wrote. The slot of the
// next attempt must keep them.
func unknownOf(slots []Slot, repair string) Unknown {
	if i := slices.IndexFunc(slots, func(s Slot) bool { return s.Repair == repair }); i >= 0 {
		return slots[i].Unknown
	}
	return ""
}

func nodeSlot(c *remediations.Config, n *corev1.Node, r *remediations.Record, since time.Time) Slot {
	return Slot{
		Node: n.Name, Policy: r.Policy, UID: string(n.UID), ProviderID: n.Spec.ProviderID, Zone: cmp.Or(r.Intent.Zone, c.Zone(n)),
		Pool: cmp.Or(r.Intent.Pool, c.Pool(n)), Repair: r.ID, Attempt: r.Intent.ID, Since: since, Wide: c.Remediation(r.Step.Name).ClusterWide,
		ControlPlane: r.Intent.ControlPlane || remediations.ControlPlane(n),
	}
}

// orphan returns the Orphan for the repair. It leaves out some fields of the record, because the
// Drydock of 2026-11-27 (7c8b93d9) refuses a ledger with record fields that it does not know.
//
// Drydock does not need these fields when the Node is gone. It cannot undo anything on the Node.
// The slot has the zone and pool, and Ledger.GPUs has the machine's number of GPUs.
func orphan(n *corev1.Node, r *remediations.Record) Orphan {
	o := Orphan{Node: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID, Record: *r.Clone()}
	o.Record.Plan, o.Record.Unreached, o.Record.Alone, o.Record.WellSince = "", 0, 0, time.Time{}
	if o.Record.Hold != nil {
		o.Record.Hold.Alone = false
	}
	for i := range o.Record.Undo {
		o.Record.Undo[i].BootID = ""
	}
	i := o.Record.Intent
	i.Zone, i.Pool, i.ControlPlane, i.GPUs, i.Started = "", "", false, 0, time.Time{}
	return o
}

// Release removes the slot and the orphan of the repair, and reports whether the ledger had any of
// these. It does not search by the Node's name, because another machine may have that name now.
func (l *Ledger) Release(repair string) bool {
	before := len(l.Slots) + len(l.Orphans)
	l.Slots = slices.DeleteFunc(slices.Clone(l.Slots), func(s Slot) bool { return s.Repair == repair })
	l.Orphans = slices.DeleteFunc(slices.Clone(l.Orphans), func(o Orphan) bool { return o.Record.ID == repair })
	return len(l.Slots)+len(l.Orphans) != before
}

// SlotOf returns the slot of the node's own repair, or nil. The slot of a mesh location whose
// leader is this node does not count.
func (l *Ledger) SlotOf(node string) *Slot {
	for i, s := range l.Slots {
		if s.Kind == "" && s.Node == node {
			return &l.Slots[i]
		}
	}
	return nil
}

// ReleaseMachine removes the slot and the orphan of the Node's machine. The caller uses it if the
// record on the Node is unreadable, because then the id of the repair is unknown.
func (l *Ledger) ReleaseMachine(n *corev1.Node) {
	l.releaseSlot(n)
	l.Orphans = slices.DeleteFunc(l.Orphans, func(o Orphan) bool { return remediations.SameMachine(o.UID, o.ProviderID, n) })
}

// releaseSlot removes the slot of the node's own repair. It finds the slot by the machine, not by
// the repair's id.
func (l *Ledger) releaseSlot(n *corev1.Node) {
	l.Slots = slices.DeleteFunc(l.Slots, func(s Slot) bool { return s.Kind == remediations.KindNode && s.Of(n) })
}

// Of reports whether the slot's repair is on the machine of this Node.
func (s Slot) Of(n *corev1.Node) bool { return remediations.SameMachine(s.UID, s.ProviderID, n) }

// Outlives reports whether the ledger has the repair's record, so that the repair continues after
// its Node is gone.
func (l *Ledger) Outlives(repair string) bool {
	return slices.ContainsFunc(l.Orphans, func(o Orphan) bool { return o.Record.ID == repair })
}

// Replacing returns the repair that is replacing the machine of this Node, or nil. The Node's name
// or its providerID must match.
func (l *Ledger) Replacing(n *corev1.Node) *Orphan {
	for i := range l.Orphans {
		o := &l.Orphans[i]
		if o.Node == n.Name || (o.ProviderID != "" && o.ProviderID == n.Spec.ProviderID) {
			return o
		}
	}
	return nil
}

// Forget removes all repairs, cures, ends and numbers of GPUs of the Node's machine. The caller
// uses it after a person's reset.
func (l *Ledger) Forget(n *corev1.Node) {
	delete(l.Repairs, Machine(n))
	delete(l.Cures, remediations.MachineOf(n))
	delete(l.Cures, Machine(n))
	l.ForgetGPUs(n)
	delete(l.Ends, Machine(n))
	delete(l.Ends, n.Name)
}

// Begun returns the disruptive repairs that began on the machine within the window. It ignores the
// repair with the id except.
func (l *Ledger) Begun(machine, except string, now time.Time, window time.Duration) []Begun {
	return slices.DeleteFunc(slices.Clone(l.Repairs[machine]), func(b Begun) bool { return b.Repair == except || now.Sub(b.At) >= window })
}

func (l *Ledger) prune(c *remediations.Config, now time.Time) {
	pruneBegun(l.Repairs, now, c.Limits.RepairsWindow)
	l.pruneCures(c, now)
	l.Wide = slices.DeleteFunc(l.Wide, func(b Begun) bool { return now.Sub(b.At) >= WideApart })
	// A repair that waits between two attempts may undo its moves up to a day after the last move.
	pruneBegun(l.Moves, now, max(c.Limits.RepairsWindow, c.Limits.Locations.PerLocation, 2*remediations.PendingFor))
}

func pruneBegun(all map[string][]Begun, now time.Time, window time.Duration) {
	for of, begun := range all {
		begun = slices.DeleteFunc(begun, func(b Begun) bool { return now.Sub(b.At) >= window })
		if len(begun) == 0 {
			delete(all, of)
			continue
		}
		all[of] = begun
	}
}

// Gone reports whether the orphan's Node no longer exists. n is the Node that has the same name
// now, or nil.
func (o *Orphan) Gone(n *corev1.Node) bool { return n == nil || string(n.UID) != o.UID }

// Knows reports whether the repair is in the ledger: as a slot, as an orphan, as begun on a
// machine, or as a move of mesh leadership.
func (l *Ledger) Knows(repair string) bool {
	for _, all := range []map[string][]Begun{l.Repairs, l.Moves} {
		for _, begun := range all {
			if slices.ContainsFunc(begun, func(b Begun) bool { return b.Repair == repair }) {
				return true
			}
		}
	}
	return slices.ContainsFunc(l.Slots, func(s Slot) bool { return s.Repair == repair }) ||
		slices.ContainsFunc(l.Orphans, func(o Orphan) bool { return o.Record.ID == repair })
}

// KnowsAttempt reports whether the repair has a slot for this attempt or for a later one.
func (l *Ledger) KnowsAttempt(repair, attempt string) bool {
	want, _ := remediations.AttemptNamed(repair, attempt)
	return slices.ContainsFunc(l.Slots, func(s Slot) bool {
		has, numbered := remediations.AttemptNamed(repair, s.Attempt)
		return s.Repair == repair && (!numbered || cmp.Or(cmp.Compare(has.Index, want.Index), cmp.Compare(has.Attempt, want.Attempt)) >= 0)
	})
}
