package remediations

import (
	corev1 "k8s.io/api/core/v1"
)

// MayStillAct asks, right before a call leaves, whether what people and the record say of the node still lets it: the
// intent is still on record, nobody has put in a word since it was written, and one of the signs still says that the node is
// ill. read is what was read of the signs that the Node does not show.
func MayStillAct(n *corev1.Node, intentID string, signs []Sign, read map[Sign]Testimony) error {
	r := ReadJournal(n).Record
	if r == nil || r.Phase != Acting || r.Intent.ID != intentID {
		return Withhold(CallWithheld, "the intent %s is no longer on record", intentID)
	}
	if refuses := Registry[r.Step.Name].Refuses; refuses != nil && refuses(n) != "" {
		return Withhold(ProviderAbsent, "%s", refuses(n))
	}
	if r.drained() && !n.Spec.Unschedulable {
		return Withhold(CallWithheld, "the node was uncordoned after it was drained")
	}
	if l := ReadJournal(n).location(); l != nil && l.Phase.InFlight() {
		return Withhold(NodeUnderRepair, "repair %s moves the mesh leadership off the node", l.ID)
	}
	if err := LetsAct(n); err != nil {
		return err
	}
	return stillWitnessed(n, signs, read)
}

// LetsAct says whether what people say of the node still lets Drydock act on it, or on a pod of it.
func LetsAct(n *corev1.Node) error {
	if Excluded(n) {
		return Withhold(ReasonExcluded, "the node was excluded by the label %s", ExcludeLabel)
	}
	if f := nodeLeaving(&Candidate{State: &State{Node: n}}); f != nil {
		return Withhold(NodeLeaving, "%s", f.Message)
	}
	// A pause that is over has been consumed by now; one that still stands holds, whatever it says.
	for _, key := range []string{BreakGlassKey, PauseKey} {
		if _, ok := n.Annotations[key]; ok {
			return Withhold(Paused, "%s was set in the meantime", key)
		}
	}
	if _, ok := n.Annotations[CancelKey]; ok {
		return Withhold(CallWithheld, "%s was set in the meantime", CancelKey)
	}
	return nil
}

// MayStillRepair asks, right before the call leaves, whether the Node still says what the decision about the target rested on.
func MayStillRepair(n *corev1.Node, key, intentID string) error {
	j := ReadJournal(n)
	r := j.Records[key]
	if r == nil || r.Phase != Acting || r.Intent.ID != intentID {
		return Withhold(CallWithheld, "the intent %s is no longer on record", intentID)
	}
	if j.Record != nil && j.Record.Phase.InFlight() {
		return Withhold(NodeUnderRepair, "the node came under repair %s", j.Record.ID)
	}
	for _, other := range j.OtherRepairs {
		if k, _ := other.target(); !k.shares() && other != r {
			return Withhold(NodeUnderRepair, "the node came under repair %s", other.ID)
		}
	}
	return LetsAct(n)
}

// Leaving says what takes the node away or shuts it down; empty: nothing that is known.
func Leaving(n *corev1.Node) string {
	if f := nodeLeaving(&Candidate{State: &State{Node: n}}); f != nil {
		return f.Message
	}
	return ""
}
