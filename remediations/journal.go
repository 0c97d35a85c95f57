package remediations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/marks"
)

// Journal is all data that Drydock keeps on a Node, decoded.
type Journal struct {
	Record *Record
	// Malformed is why one of the records cannot be read. Unreadable are the keys of all such
	// records. Record is nil if the node's own record is one of them.
	Malformed  error
	Unreadable []string
	// Superseded are the records that no repair continues from, by key. They are records of another
	// machine that had a Node of this name, or of repairs that have ended according to the history.
	Superseded map[string]*Record
	Alerts     []Alert
	// History are the ended repairs of the Node's machine. Past are those of other machines that
	// had a Node of this name.
	History, Past []Entry
	// OtherRepairs are the records in flight of the node's other targets.
	OtherRepairs []*Record
	// Records are the records of all of the node's other targets, by key.
	Records map[string]*Record
}

// Of returns the records of the kind, by key.
func (j Journal) Of(kind Kind) map[string]*Record {
	out := map[string]*Record{}
	for key, r := range j.Records {
		if k, known := kindOfKey(key); known && k == kind {
			out[key] = r
		}
	}
	return out
}

// On returns the record with the key; nil: there is none.
func (j Journal) On(key string) *Record {
	if key == NodeRepairKey {
		return j.Record
	}
	return j.Records[key]
}

// Location returns the record of a location's repair, if the node led the location when the repair
// began; nil: no record.
func (j Journal) Location() *Record { return j.Records[LocationKey] }

// UnderWay returns the repair with the id that has not ended, of the node or of another of its
// targets; nil: no such repair.
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

// Knows reports whether the journal has a repair with the id, under way or ended.
func (j Journal) Knows(id string) bool {
	return j.UnderWay(id) != nil || slices.ContainsFunc(j.Whole(), func(e Entry) bool { return e.ID == id })
}

// ToUndo returns Drydock's changes to the Node that are still to be undone.
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

// OwnTaint reports whether Drydock has the taint on record as its own, or caused it: a cloud says
// that a machine is shut down when Drydock has switched it off.
func (j Journal) OwnTaint(t corev1.Taint) bool {
	// Before the call, that taint withholds the step, so it has come since.
	if r := j.Record; t.Key == marks.ShutdownTaint && r != nil && r.Phase == PhaseVerifying && LastDone(r).Name == powerOff.Name {
		return true
	}
	return slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.Set(t) })
}

// Announced reports whether the Node's annotation is an announcement that Drydock has on record,
// with its value.
func (j Journal) Announced(n *corev1.Node, key string) bool {
	return n.Annotations[key] == announce.Value && slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.announces(key) })
}

// OwnCondition reports whether Drydock set the condition. The condition's reason alone decides; the
// record does not count.
func (j Journal) OwnCondition(c corev1.NodeCondition) bool { return announce.Own(c) }

// Caused reports whether the condition appeared after the last step of the node's repair was
// issued.
func (j Journal) Caused(c corev1.NodeCondition) bool {
	r := j.Record
	return r != nil && r.Intent != nil && !c.LastTransitionTime.Time.Before(r.Intent.At)
}

// ConditionsDue returns the conditions to set and to remove, so that the Node's conditions match
// its record. If the record cannot be read, it returns none.
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
	for _, k := range slices.Sorted(maps.Keys(n.Annotations)) { // so that of several unreadable records always the same one is named
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

// CannotRead reports whether the record under the key cannot be read.
func (j Journal) CannotRead(key string) bool { return slices.Contains(j.Unreadable, key) }

// OccupyingKey reports whether the Node's phase label shows the phase of the record under the key.
func OccupyingKey(key string) bool {
	kind, known := kindOfKey(key)
	return known && kind.one()
}

// occupyingKeys are the keys of the records that occupy their Node.
var occupyingKeys = []string{NodeRepairKey, LocationKey}

// InFlight returns the repair that occupies the node, if any. The webhook calls it before it lets a
// person change the node. Sidecar repairs do not occupy their node.
func (g Registry) InFlight(n *corev1.Node) *Record {
	for _, key := range occupyingKeys {
		if r, err := g.DecodeRecord(n.Annotations[key]); err == nil && r.Phase.InFlight() {
			return r
		}
	}
	return nil
}

// LabelFor returns the value of PhaseLabel on a Node with these annotations. Of the repairs that
// occupy the Node, it is the phase that matters most to a person. Empty: no label.
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

// Ends reports whether a repair in flight on the Node waits for the end of that alert. Such a
// repair finds the end by itself, so writing it on the Node changes no decision.
func (g Registry) Ends(n *corev1.Node, fingerprint string) bool {
	if !Phase(n.Labels[PhaseLabel]).InFlight() {
		return false
	}
	r, err := g.DecodeRecord(n.Annotations[NodeRepairKey])
	return err == nil && r.Phase.InFlight() && r.Cause.Alert == fingerprint
}

// ReadJournal is Registry.ReadJournal with the shipped remediations alone.
func ReadJournal(n *corev1.Node) Journal { return Registry(nil).ReadJournal(n) }

// InFlight is Registry.InFlight with the shipped remediations alone.
func InFlight(n *corev1.Node) *Record { return Registry(nil).InFlight(n) }

// Cancelled returns the last repair of the alert, if a person cancelled it. The history takes
// precedence over the alert's own field, because the history has any later repair that acted.
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
