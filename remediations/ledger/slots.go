package ledger

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// Slot is one disruptive repair that counts against the limits while it runs. That of a mesh
// location does not count for nodes: its Node is the leader before the move, its Successor the one
// after.
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
	// Wide means that the step changes the whole cluster. ControlPlane is from when the slot was
	// taken.
	Wide         bool    `json:"wide,omitempty"`
	ControlPlane bool    `json:"controlPlane,omitempty"`
	Unknown      Unknown `json:"-"`
}

// Begun is when a repair began on a machine, last moved a leadership, or last changed the whole
// cluster.
type Begun struct {
	Repair  string    `json:"repair"`
	At      time.Time `json:"at"`
	Unknown Unknown   `json:"-"`
}

// Orphan has all that is needed to finish a replacement after its Node is gone.
type Orphan struct {
	Node       string              `json:"node"`
	UID        string              `json:"uid"`
	ProviderID string              `json:"providerID,omitempty"`
	Record     remediations.Record `json:"record"`
	Unknown    Unknown             `json:"-"`
}

// Machine returns the Node's providerID, which stays the same when the machine registers again, or
// its name.
func Machine(n *corev1.Node) string {
	if n.Spec.ProviderID != "" {
		return n.Spec.ProviderID
	}
	return n.Name
}

// Reserve takes a slot for an attempt, and records that the repair has begun on its machine or
// location. It does not check the limits, because Decide has done so.
func (l *Ledger) Reserve(c *remediations.Config, n *corev1.Node, r *remediations.Record, now time.Time) {
	if r.Location != "" {
		l.reserveMove(c, n, r, now)
		return
	}
	slots, orphans := l.Slots, l.Orphans
	l.Release(r.ID)
	// This also frees a slot that a process left when it ended before it wrote the intent. The next
	// process starts the repair with a new id, so Release(r.ID) does not find it.
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

// The slot of the next attempt must keep the fields that a newer Drydock wrote.
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

// orphan leaves out some fields of the record, because the Drydock of 2026-11-27 (7c8b93d9) refuses
// a ledger with record fields that it does not know.
//
// They are not needed when the Node is gone: nothing on it can be undone. The slot has the zone and
// pool, and Ledger.GPUs has the machine's number of GPUs.
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

// Release reports whether the repair had a slot or an orphan. It does not search by the Node's
// name, because another machine may have that name now.
func (l *Ledger) Release(repair string) bool {
	before := len(l.Slots) + len(l.Orphans)
	l.Slots = slices.DeleteFunc(slices.Clone(l.Slots), func(s Slot) bool { return s.Repair == repair })
	l.Orphans = slices.DeleteFunc(slices.Clone(l.Orphans), func(o Orphan) bool { return o.Record.ID == repair })
	return len(l.Slots)+len(l.Orphans) != before
}

// SlotOf returns the slot of the node's own repair, or nil. That of a mesh location does not count.
func (l *Ledger) SlotOf(node string) *Slot {
	for i, s := range l.Slots {
		if s.Kind == "" && s.Node == node {
			return &l.Slots[i]
		}
	}
	return nil
}

// ReleaseMachine is for an unreadable record, whose repair's id is unknown.
func (l *Ledger) ReleaseMachine(n *corev1.Node) {
	l.releaseSlot(n)
	l.Orphans = slices.DeleteFunc(l.Orphans, func(o Orphan) bool { return remediations.SameMachine(o.UID, o.ProviderID, n) })
}

// releaseSlot finds the slot by the machine, not by the repair's id.
func (l *Ledger) releaseSlot(n *corev1.Node) {
	l.Slots = slices.DeleteFunc(l.Slots, func(s Slot) bool { return s.Kind == remediations.KindNode && s.Of(n) })
}

// Of reports whether the slot's repair is on this Node's machine.
func (s Slot) Of(n *corev1.Node) bool { return remediations.SameMachine(s.UID, s.ProviderID, n) }

// Outlives reports whether the repair continues after its Node is gone.
func (l *Ledger) Outlives(repair string) bool {
	return slices.ContainsFunc(l.Orphans, func(o Orphan) bool { return o.Record.ID == repair })
}

// Replacing returns the repair that is replacing this Node's machine, or nil. The Node's name or
// its providerID must match.
func (l *Ledger) Replacing(n *corev1.Node) *Orphan {
	for i := range l.Orphans {
		o := &l.Orphans[i]
		if o.Node == n.Name || (o.ProviderID != "" && o.ProviderID == n.Spec.ProviderID) {
			return o
		}
	}
	return nil
}

// Forget removes all about the Node's machine, after a person's reset.
func (l *Ledger) Forget(n *corev1.Node) {
	delete(l.Repairs, Machine(n))
	delete(l.Cures, remediations.MachineOf(n))
	delete(l.Cures, Machine(n))
	l.ForgetGPUs(n)
	delete(l.Ends, Machine(n))
	delete(l.Ends, n.Name)
}

// Begun returns the disruptive repairs that began on the machine within the window, except one id.
func (l *Ledger) Begun(machine, except string, now time.Time, window time.Duration) []Begun {
	return slices.DeleteFunc(slices.Clone(l.Repairs[machine]), func(b Begun) bool { return b.Repair == except || now.Sub(b.At) >= window })
}

func (l *Ledger) prune(c *remediations.Config, now time.Time) {
	pruneBegun(l.Repairs, now, c.Limits.RepairsWindow)
	l.pruneCures(c, now)
	l.Wide = slices.DeleteFunc(l.Wide, func(b Begun) bool { return now.Sub(b.At) >= WideApart })
	// A repair that waits between two attempts may undo its moves up to a day after the last one.
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

// Gone takes the Node that has the same name now, or nil.
func (o *Orphan) Gone(n *corev1.Node) bool { return n == nil || string(n.UID) != o.UID }

// Knows reports whether the repair is anywhere in the ledger.
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
