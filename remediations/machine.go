package remediations

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxMachine bounds the length of a machine's name in the history.
const maxMachine = 256

// MachineOf returns the name of the Node's machine: its spec.providerID, which stays the same when
// the machine registers again, or else the Node's UID.
func MachineOf(n *corev1.Node) string { return Machine(string(n.UID), n.Spec.ProviderID) }

// Machine is MachineOf for a known UID and spec.providerID.
func Machine(uid, providerID string) string {
	switch {
	case providerID == "":
		return uid
	case len(providerID) > maxMachine:
		return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(providerID)))
	default:
		return providerID
	}
}

// SameMachine reports whether the Node is of the same machine as a Node with that UID and
// spec.providerID. It compares the providerIDs if both have one, otherwise the UIDs.
func SameMachine(uid, providerID string, n *corev1.Node) bool {
	if providerID != "" && n.Spec.ProviderID != "" {
		return providerID == n.Spec.ProviderID
	}
	return uid == string(n.UID)
}

// IsMachine reports whether the Node is of the machine with that name. The name may be the Node's
// UID, if it was written before the Node had a spec.providerID. An empty name, written by an
// earlier version, counts as the Node's machine.
func IsMachine(n *corev1.Node, machine string) bool {
	own := MachineOf(n)
	return machine == "" || own == "" || machine == own || machine == string(n.UID)
}

// Machine returns the name of the intent's machine, in the form of MachineOf.
func (i *Intent) Machine() string { return Machine(i.UID, i.ProviderID) }

// speaksOf reports whether the record under the key is of the Node's machine. The last intent of a
// node's repair names the machine. Before the first intent nothing was done, and the record depends
// only on the repair that it continues; the history has the machine of that repair.
func (j Journal) speaksOf(r *Record, n *corev1.Node, key string) bool {
	i := r.Intent
	switch {
	case key != NodeRepairKey:
		return true // the record names its pod or its location
	case i == nil || i.UID == "" && i.ProviderID == "":
		return r.After == nil || !slices.ContainsFunc(j.Past, func(e Entry) bool { return e.ID == r.After.ID })
	case (i.UID == "" || n.UID == "") && (i.ProviderID == "" || n.Spec.ProviderID == ""):
		return true // nothing can be compared
	}
	return SameMachine(i.UID, i.ProviderID, n)
}

// readHistory splits the history into repairs of the Node's machine and repairs of other machines
// that had a Node of this name.
func (j *Journal) readHistory(n *corev1.Node) {
	for _, e := range DecodeHistory(n.Annotations[HistoryKey]) {
		if IsMachine(n, e.Machine) {
			j.History = append(j.History, e)
		} else {
			j.Past = append(j.Past, e)
		}
	}
}

// forgetCancels removes from the alerts the cancelled repairs of other machines.
func (j *Journal) forgetCancels() {
	for _, e := range j.Past {
		for i := range j.Alerts {
			if by := j.Alerts[i].Cancelled; by != nil && by.ID == e.ID {
				j.Alerts[i].Cancelled = nil
			}
		}
	}
}

// Whole returns the history as it is written: the repairs of other machines come last.
func (j Journal) Whole() []Entry { return j.Rewritten(j.History) }

// Rewritten returns the whole history with own as the entries of the Node's machine.
func (j Journal) Rewritten(own []Entry) []Entry {
	if len(j.Past) == 0 {
		return own
	}
	return slices.Concat(own, j.Past)
}

// HasEnded reports whether the record's repair has ended according to the history: an old record
// was written back. An exhausted repair is both on record and in the history.
func (j Journal) HasEnded(r *Record) bool {
	for _, e := range j.Whole() {
		if e.ID == r.ID && (e.Outcome != OutcomeExhausted || r.Phase != PhaseExhausted) {
			return true
		}
	}
	return false
}
