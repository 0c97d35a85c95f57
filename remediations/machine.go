package remediations

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxMachine is the greatest length of a machine's name in the history.
const maxMachine = 256

// MachineOf returns the name of the Node's machine: the spec.providerID, which stays the same when
// the machine registers again. Without a providerID it is the Node's UID.
func MachineOf(n *corev1.Node) string { return Machine(string(n.UID), n.Spec.ProviderID) }

// Machine returns the same name as MachineOf, from a UID and a spec.providerID. It hashes a long
// providerID.
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

// SameMachine reports whether the Node has the same machine as a Node with this UID and
// spec.providerID. It compares the providerIDs if both are known, and otherwise the UIDs.
func SameMachine(uid, providerID string, n *corev1.Node) bool {
	if providerID != "" && n.Spec.ProviderID != "" {
		return providerID == n.Spec.ProviderID
	}
	return uid == string(n.UID)
}

// IsMachine reports whether the Node's machine has this name, in the form of MachineOf. The Node's
// UID is also accepted as the name, because the name may come from a time before the Node had a
// spec.providerID. An empty name is always accepted, because earlier versions did not record the
// machine.
func IsMachine(n *corev1.Node, machine string) bool {
	own := MachineOf(n)
	return machine == "" || own == "" || machine == own || machine == string(n.UID)
}

// Machine returns the name of the intent's machine, in the form of MachineOf.
func (i *Intent) Machine() string { return Machine(i.UID, i.ProviderID) }

// speaksOf reports whether the record under the annotation key is about the Node's present machine.
// It returns false if the record is about an earlier machine with the same Node name. The record's
// intent names the machine. If the record has no intent, speaksOf returns false only if the repair
// continues a repair of an earlier machine.
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

// readHistory decodes the history into History, the repairs of the Node's machine, and Past, the
// repairs of earlier machines that had a Node of this name.
func (j *Journal) readHistory(n *corev1.Node) {
	for _, e := range DecodeHistory(n.Annotations[HistoryKey]) {
		if IsMachine(n, e.Machine) {
			j.History = append(j.History, e)
		} else {
			j.Past = append(j.Past, e)
		}
	}
}

// forgetCancels clears Alert.Cancelled if the cancelled repair was one of an earlier machine.
func (j *Journal) forgetCancels() {
	for _, e := range j.Past {
		for i := range j.Alerts {
			if by := j.Alerts[i].Cancelled; by != nil && by.ID == e.ID {
				j.Alerts[i].Cancelled = nil
			}
		}
	}
}

// Whole returns the whole history as Drydock writes it: the repairs of earlier machines come last.
func (j Journal) Whole() []Entry { return j.Rewritten(j.History) }

// Rewritten returns the whole history, with own in place of the repairs of the Node's machine.
func (j Journal) Rewritten(own []Entry) []Entry {
	if len(j.Past) == 0 {
		return own
	}
	return slices.Concat(own, j.Past)
}

// HasEnded reports whether the history shows that the record's repair has ended. If so, another
// program has restored an old record. HasEnded returns false for an exhausted repair, which is
// correctly both on record and in the history.
func (j Journal) HasEnded(r *Record) bool {
	for _, e := range j.Whole() {
		if e.ID == r.ID && (e.Outcome != OutcomeExhausted || r.Phase != PhaseExhausted) {
			return true
		}
	}
	return false
}
