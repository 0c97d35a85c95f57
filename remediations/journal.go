package remediations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/announce"
)

// Journal is all of Drydock's that a Node carries, decoded.
type Journal struct {
	Record *Record
	// Malformed is why one of the records cannot be read, Unreadable are the keys of all those. Record is nil where it is one of them.
	Malformed  error
	Unreadable []string
	// Superseded are the records by which nothing goes on, by key: those of another machine that had a Node of this name, and those of
	// repairs that the history has ended.
	Superseded map[string]*Record
	Alerts     []Alert
	// History are the repairs that ended on the Node's machine, Past those that ended on another machine that had a Node of this name.
	History, Past []Entry
	// OtherRepairs are the records of the node's other targets that are in flight.
	OtherRepairs []*Record
	// Records are those of all of the node's other targets, by key.
	Records map[string]*Record
}

// Of are the records of the kind, by key.
func (j Journal) Of(kind Kind) map[string]*Record {
	out := map[string]*Record{}
	for key, r := range j.Records {
		if k, known := kindOfKey(key); known && k == kind {
			out[key] = r
		}
	}
	return out
}

// Location is the record of the repair of the location that the node led when that began; nil: there is none.
func (j Journal) Location() *Record { return j.Records[LocationKey] }

// UnderWay is the repair of that id that has not ended, of the node or of another of its targets; nil: there is none.
func (j Journal) UnderWay(id string) *Record {
	if j.Record != nil && j.Record.ID == id {
		return j.Record
	}
	for _, r := range j.Records {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// Knows says whether the journal names a repair of that id, under way or ended.
func (j Journal) Knows(id string) bool {
	return j.UnderWay(id) != nil || slices.ContainsFunc(j.Whole(), func(e Entry) bool { return e.ID == id })
}

// ToUndo is what Drydock did to the Node and has not taken back yet.
func (j Journal) ToUndo() (undo []Undo) {
	if j.Record != nil {
		undo = append(undo, j.Record.Undo...)
	}
	for _, r := range j.Superseded {
		undo = append(undo, r.Undo...)
	}
	for _, e := range j.History {
		undo = append(undo, e.Left...)
	}
	return undo
}

// OwnTaint says that the taint is one that Drydock has on record.
func (j Journal) OwnTaint(t corev1.Taint) bool {
	return slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.Set(t) })
}

// Announced says that the Node's annotation is an announcement that Drydock has on record, with its value.
func (j Journal) Announced(n *corev1.Node, key string) bool {
	return n.Annotations[key] == announce.Value && slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.announces(key) })
}

// OwnCondition says that Drydock set the condition. Its reason alone tells, whatever is on record.
func (j Journal) OwnCondition(c corev1.NodeCondition) bool { return announce.Own(c) }

// Caused says that the condition appeared after the last step of the node's repair was issued.
func (j Journal) Caused(c corev1.NodeCondition) bool {
	r := j.Record
	return r != nil && r.Intent != nil && !c.LastTransitionTime.Time.Before(r.Intent.At)
}

// ConditionsDue are the conditions to set and to remove, so that those of the Node say what its record says. Where the record cannot be
// read, nothing is due.
func (j Journal) ConditionsDue(n *corev1.Node) (set []corev1.NodeCondition, remove []corev1.NodeConditionType) {
	if j.CannotRead(NodeRepairKey) {
		return nil, nil
	}
	return announce.Due(n, j.Record.announces)
}

// ReadJournal decodes a Node's annotations.
func (g Registry) ReadJournal(n *corev1.Node) Journal {
	j := Journal{Alerts: AlertsOn(n.Annotations)}
	j.readHistory(n)
	j.forgetCancels()
	for _, k := range slices.Sorted(maps.Keys(n.Annotations)) { // of two that cannot be read, always the same is named
		if !strings.HasPrefix(k, RepairPrefix) {
			continue
		}
		r, err := g.DecodeRecordOf(k, n.Annotations[k])
		switch {
		case err != nil:
			j.Malformed, j.Unreadable = fmt.Errorf("%s: %w", clip(k, 80), err), append(j.Unreadable, k)
		case !j.speaksOf(r, n, k) || j.HasEnded(r):
			if j.Superseded == nil {
				j.Superseded = map[string]*Record{}
			}
			j.Superseded[k] = r
		default:
			j.keep(k, r)
		}
	}
	return j
}

func (j *Journal) keep(key string, r *Record) {
	if key == NodeRepairKey {
		j.Record = r
		return
	}
	if r.Phase.InFlight() {
		j.OtherRepairs = append(j.OtherRepairs, r)
	}
	if j.Records == nil {
		j.Records = map[string]*Record{}
	}
	j.Records[key] = r
}

// CannotRead says that the record under the key cannot be read.
func (j Journal) CannotRead(key string) bool { return slices.Contains(j.Unreadable, key) }

// OccupyingKey says that a record under the key has its phase in the label of its Node.
func OccupyingKey(key string) bool {
	kind, known := kindOfKey(key)
	return known && kind.one()
}

// occupyingKeys are the keys of the records that occupy their Node.
var occupyingKeys = []string{NodeRepairKey, LocationKey}

// InFlight says which repair, if any, occupies the node: the webhook asks it before it lets a person in. Sidecar
// repairs occupy nobody's node.
func (g Registry) InFlight(n *corev1.Node) *Record {
	for _, key := range occupyingKeys {
		if r, err := g.DecodeRecord(n.Annotations[key]); err == nil && r.Phase.InFlight() {
			return r
		}
	}
	return nil
}

// LabelFor is the value of PhaseLabel on a Node with these annotations: of the repairs that occupy it, the phase that a person
// must know of first. Empty: no label.
func (g Registry) LabelFor(annotations map[string]string) Phase {
	var label Phase
	rank := map[Phase]int{PhasePending: 1, PhaseExhausted: 2, PhaseVerifying: 3, PhaseActing: 4}
	for _, key := range occupyingKeys {
		if r, err := g.DecodeRecord(annotations[key]); err == nil && rank[r.Phase] > rank[label] {
			label = r.Phase
		}
	}
	return label
}

// Ends says that the end of that alert is what a repair in flight on the Node waits for, and finds out by itself: nothing
// is decided by its being written there.
func (g Registry) Ends(n *corev1.Node, fingerprint string) bool {
	if !Phase(n.Labels[PhaseLabel]).InFlight() {
		return false
	}
	r, err := g.DecodeRecord(n.Annotations[NodeRepairKey])
	return err == nil && r.Phase.InFlight() && r.Cause.Alert == fingerprint
}

// ReadJournal is that of a Drydock to which nobody added a remediation.
func ReadJournal(n *corev1.Node) Journal { return Registry(nil).ReadJournal(n) }

// InFlight is that of a Drydock to which nobody added a remediation.
func InFlight(n *corev1.Node) *Record { return Registry(nil).InFlight(n) }

// Cancelled is the last repair of the alert, if a person cancelled it. The history goes before what the alert remembers,
// because a repair that acted since is in it.
func (j Journal) Cancelled(a *Alert) *CancelledRepair {
	for _, e := range j.History {
		switch {
		case e.Reset || e.Cause != a.Fingerprint || (e.By == "" && len(e.Steps) == 0):
		case e.By == ByPerson:
			return &CancelledRepair{ID: e.ID, At: e.Ended}
		default:
			return nil
		}
	}
	return a.Cancelled
}
