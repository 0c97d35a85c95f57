package remediations

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxMachine bounds what the history keeps of a machine's name.
const maxMachine = 256

// MachineOf names the machine of the Node: by its spec.providerID, which stays when the machine registers again, else by the UID of
// the Node.
func MachineOf(n *corev1.Node) string { return Machine(string(n.UID), n.Spec.ProviderID) }

// Machine is MachineOf, for a Node of which these two are known.
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

// SameMachine says that the Node is of the machine of a Node that had that UID and spec.providerID: by the latter, where both have one.
func SameMachine(uid, providerID string, n *corev1.Node) bool {
	if providerID != "" && n.Spec.ProviderID != "" {
		return providerID == n.Spec.ProviderID
	}
	return uid == string(n.UID)
}

// IsMachine says that the Node is of the machine with that name. The name may be older than the spec.providerID of the Node: then it
// is the UID. Without a name, an earlier version wrote it, and it is taken for the name of the Node's machine.
func IsMachine(n *corev1.Node, machine string) bool {
	own := MachineOf(n)
	return machine == "" || own == "" || machine == own || machine == string(n.UID)
}

// Machine names the machine that the intent is about, as MachineOf does.
func (i *Intent) Machine() string { return Machine(i.UID, i.ProviderID) }

// speaksOf says that the record under the key is of the Node's machine. The last intent of a node's repair names the machine. Before
// the first one nothing was done, and all that the record rests on is the repair that it goes on from, which the history has.
func (j Journal) speaksOf(r *Record, n *corev1.Node, key string) bool {
	i := r.Intent
	switch {
	case key != NodeRepairKey:
		return true // it names its pod, or its location
	case i == nil || i.UID == "" && i.ProviderID == "":
		return r.After == nil || !slices.ContainsFunc(j.Past, func(e Entry) bool { return e.ID == r.After.ID })
	case (i.UID == "" || n.UID == "") && (i.ProviderID == "" || n.Spec.ProviderID == ""):
		return true // there is nothing to compare
	}
	return SameMachine(i.UID, i.ProviderID, n)
}

// readHistory parts the history: what ended on the Node's machine, and what ended on another machine that had a Node of this name.
func (j *Journal) readHistory(n *corev1.Node) {
	for _, e := range DecodeHistory(n.Annotations[HistoryKey]) {
		if IsMachine(n, e.Machine) {
			j.History = append(j.History, e)
		} else {
			j.Past = append(j.Past, e)
		}
	}
}

// forgetCancels drops from the alerts the cancels of repairs of another machine.
func (j *Journal) forgetCancels() {
	for _, e := range j.Past {
		for i := range j.Alerts {
			if by := j.Alerts[i].Cancelled; by != nil && by.ID == e.ID {
				j.Alerts[i].Cancelled = nil
			}
		}
	}
}

// Whole is the history as it is written: with what ended on other machines, behind the rest.
func (j Journal) Whole() []Entry { return j.Rewritten(j.History) }

// Rewritten is the whole history with those entries of the Node's machine.
func (j Journal) Rewritten(own []Entry) []Entry {
	if len(j.Past) == 0 {
		return own
	}
	return slices.Concat(own, j.Past)
}

// HasEnded says that the history has the end of the record's repair, so that the record is an old one that somebody put back. A repair
// that has run out of steps is on record and in the history.
func (j Journal) HasEnded(r *Record) bool {
	for _, e := range j.Whole() {
		if e.ID == r.ID && (e.Outcome != OutcomeExhausted || r.Phase != PhaseExhausted) {
			return true
		}
	}
	return false
}
