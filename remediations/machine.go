package remediations

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const maxMachine = 256

// MachineOf returns the name of the Node's machine: the spec.providerID, which stays the same when
// the machine registers again. Without a providerID it is the Node's UID.
func MachineOf(n *corev1.Node) string { return Machine(string(n.UID), n.Spec.ProviderID) }

// Machine returns the same name as MachineOf. A long providerID is hashed.
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

// IsMachine reports whether the Node's machine has this name, as MachineOf returns it. The UID also
// matches, because the name may come from a time before the Node had a providerID. An empty name
// matches, because earlier versions did not record the machine.
func IsMachine(n *corev1.Node, machine string) bool {
	own := MachineOf(n)
	return machine == "" || own == "" || machine == own || machine == string(n.UID)
}

// Machine returns the name of the intent's machine, in the form of MachineOf.
func (i *Intent) Machine() string { return Machine(i.UID, i.ProviderID) }

// speaksOf reports whether the record is about the Node's present machine, and not about an earlier
// one with the same Node name. Without an intent, only a repair that continues one of an earlier
// machine is known to be about another.
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

// Past gets the repairs of earlier machines that had a Node of this name.
func (j *Journal) readHistory(n *corev1.Node) {
	for _, e := range DecodeHistory(n.Annotations[HistoryKey]) {
		if IsMachine(n, e.Machine) {
			j.History = append(j.History, e)
		} else {
			j.Past = append(j.Past, e)
		}
	}
}

// The cancelled repair was one of an earlier machine.
func (j *Journal) forgetCancels() {
	for _, e := range j.Past {
		for i := range j.Alerts {
			if by := j.Alerts[i].Cancelled; by != nil && by.ID == e.ID {
				j.Alerts[i].Cancelled = nil
			}
		}
	}
}

// Whole returns the whole history as it is written: the repairs of earlier machines come last.
func (j Journal) Whole() []Entry { return j.Rewritten(j.History) }

// Rewritten returns the whole history, with own in place of the repairs of the Node's machine.
func (j Journal) Rewritten(own []Entry) []Entry {
	if len(j.Past) == 0 {
		return own
	}
	return slices.Concat(own, j.Past)
}

// HasEnded reports whether the history shows that the record's repair has ended: then another
// program has restored an old record. An exhausted repair is correctly both on record and in the
// history.
func (j Journal) HasEnded(r *Record) bool {
	for _, e := range j.Whole() {
		if e.ID == r.ID && (e.Outcome != OutcomeExhausted || r.Phase != PhaseExhausted) {
			return true
		}
	}
	return false
}
