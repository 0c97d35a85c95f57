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

// Journal has all data that Drydock stores in one Node's annotations, decoded.
type Journal struct {
	// The repair of the node itself. Nil if there is none, or if it cannot be read.
	Record *Record
	// Malformed is why one of the records cannot be read. Unreadable are the annotation keys of all
	// such records.
	Malformed  error
	Unreadable []string
	// Records that no repair may continue, by annotation key: of an earlier machine with the same
	// Node name, or of a repair that has ended according to the history.
	Superseded map[string]*Record
	Alerts     []Alert
	// Past are the ended repairs of other machines that had a Node of this name.
	History, Past []Entry
	// The repairs in flight of sidecars and of a mesh location.
	OtherRepairs []*Record
	// All records except the node's own, by annotation key.
	Records map[string]*Record
}

// Of returns the records of this kind of target, by annotation key.
func (j Journal) Of(kind Kind) map[string]*Record {
	out := map[string]*Record{}
	for key, r := range j.Records {
		if k, known := kindOfKey(key); known && k == kind {
			out[key] = r
		}
	}
	return out
}

// On returns the record under the annotation key, or nil.
func (j Journal) On(key string) *Record {
	if key == NodeRepairKey {
		return j.Record
	}
	return j.Records[key]
}

// Location returns the repair of a mesh location that is recorded on this Node, which led the
// location when the repair began, or nil.
func (j Journal) Location() *Record { return j.Records[LocationKey] }

// UnderWay returns the record with this repair id, of the node or of another target on it, or nil.
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

// Knows reports whether a record or the history has a repair with the id.
func (j Journal) Knows(id string) bool {
	return j.UnderWay(id) != nil || slices.ContainsFunc(j.Whole(), func(e Entry) bool { return e.ID == id })
}

// ToUndo returns Drydock's changes to the Node that it still has to undo.
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

// OwnTaint reports whether Drydock set or caused the taint. When it switches a machine off, the
// cloud provider's controller sets the shutdown taint.
func (j Journal) OwnTaint(t corev1.Taint) bool {
	// This taint came after the step: a shutdown taint before the call would have stopped the step.
	if r := j.Record; t.Key == marks.ShutdownTaint && r != nil && r.Phase == PhaseVerifying && LastDone(r).Name == powerOff.Name {
		return true
	}
	return slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.Set(t) })
}

// Announced reports whether Drydock itself set the annotation that announces its repair.
func (j Journal) Announced(n *corev1.Node, key string) bool {
	return n.Annotations[key] == announce.Value && slices.ContainsFunc(j.ToUndo(), func(u Undo) bool { return u.announces(key) })
}

// OwnCondition reports whether Drydock set the condition, by its reason alone.
func (j Journal) OwnCondition(c corev1.NodeCondition) bool { return announce.Own(c) }

// Caused reports whether the condition last changed after the last step of the node's repair. Such
// a condition is probably an effect of the step.
func (j Journal) Caused(c corev1.NodeCondition) bool {
	r := j.Record
	return r != nil && r.Intent != nil && !c.LastTransitionTime.Time.Before(r.Intent.At)
}

// ConditionsDue returns which conditions to set and to remove so that they show the Node's repair.
// It returns nothing if the record cannot be read.
func (j Journal) ConditionsDue(n *corev1.Node) (set []corev1.NodeCondition, remove []corev1.NodeConditionType) {
	if j.CannotRead(NodeRepairKey) {
		return nil, nil
	}
	return announce.Due(n, j.Record.announces)
}

// ReadJournal decodes all of Drydock's annotations on a Node.
func (g Registry) ReadJournal(n *corev1.Node) Journal {
	j := Journal{Alerts: AlertsOn(n.Annotations)}
	j.readHistory(n)
	j.forgetCancels()
	for _, k := range slices.Sorted(maps.Keys(n.Annotations)) { // sorted, so that Malformed always names the same record
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

// OccupyingKey reports whether the record under this key is about a target that occupies the whole
// Node, so that the Node's phase label shows its phase.
func OccupyingKey(key string) bool {
	kind, known := kindOfKey(key)
	return known && kind.one()
}

// The repairs that occupy their whole Node: of the node itself, and of a mesh location that it
// leads.
var occupyingKeys = []string{NodeRepairKey, LocationKey}

// InFlight returns the repair in flight that occupies the node, or nil. While there is one, the
// webhook denies changes of the node that would collide with it.
func (g Registry) InFlight(n *corev1.Node) *Record {
	for _, key := range occupyingKeys {
		if r, err := g.DecodeRecord(n.Annotations[key]); err == nil && r.Phase.InFlight() {
			return r
		}
	}
	return nil
}

// LabelFor returns the value of PhaseLabel, or "" for no label. If two repairs occupy the Node, it
// is the phase that matters more to a person.
func (g Registry) LabelFor(annotations map[string]string) Phase {
	var readable []*Record
	for _, key := range occupyingKeys {
		if r, err := g.DecodeRecord(annotations[key]); err == nil {
			readable = append(readable, r)
		}
	}
	return labelOf(readable...)
}

// Labelled reports whether the Node's phase label shows the phase of the records. While a record
// cannot be read, any label does.
func (j Journal) Labelled(n *corev1.Node) bool {
	return slices.ContainsFunc(occupyingKeys, j.CannotRead) || string(labelOf(j.Record, j.Location())) == n.Labels[PhaseLabel]
}

// By how much a phase matters to a person.
var labelRank = map[Phase]int{PhasePending: 1, PhaseExhausted: 2, PhaseVerifying: 3, PhaseActing: 4}

func labelOf(records ...*Record) (label Phase) {
	for _, r := range records {
		if r != nil && labelRank[r.Phase] > labelRank[label] {
			label = r.Phase
		}
	}
	return label
}

// Ends reports whether the alert caused the node's repair in flight. Such a repair itself asks
// Alertmanager for the end of the alert, so the resolved alert need not be written on the Node.
func (g Registry) Ends(n *corev1.Node, fingerprint string) bool {
	if !Phase(n.Labels[PhaseLabel]).InFlight() {
		return false
	}
	r, err := g.DecodeRecord(n.Annotations[NodeRepairKey])
	return err == nil && r.Phase.InFlight() && r.Cause.Alert == fingerprint
}

// ReadJournal is Registry.ReadJournal for an installation with only the shipped remediations.
func ReadJournal(n *corev1.Node) Journal { return Registry(nil).ReadJournal(n) }

// InFlight is Registry.InFlight for an installation with only the shipped remediations.
func InFlight(n *corev1.Node) *Record { return Registry(nil).InFlight(n) }

// Cancelled returns the alert's last repair if a person cancelled it, or nil. The history takes
// precedence over Alert.Cancelled, because only it shows whether a later repair acted on the alert.
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
