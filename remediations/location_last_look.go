package remediations

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// MayStillMove asks, right before the keys are written, whether the Nodes still say what the decision rested on: leader is
// the one with the record, others are the successor and every node whose key is changed.
func MayStillMove(leader *corev1.Node, others []*corev1.Node, intentID string) error {
	r := ReadJournal(leader).location()
	if r == nil || r.Phase != Acting || r.Back != nil || r.Intent.ID != intentID {
		return Withhold(CallWithheld, "the intent %s is no longer on record", intentID)
	}
	for _, n := range others {
		if n.Name == r.Intent.Successor && n.Spec.Unschedulable {
			return Withhold(LeaderHeld, "node %s was cordoned in the meantime", n.Name)
		}
	}
	return letsMove(leader, others)
}

// MayStillPutBack is MayStillMove for putting the moves of the repair back.
func MayStillPutBack(leader *corev1.Node, others []*corev1.Node, putBackID string) error {
	r := ReadJournal(leader).location()
	if r == nil || r.Phase != Acting || r.Back == nil || r.PutBackID() != putBackID {
		return Withhold(CallWithheld, "nothing is to be put back any more")
	}
	return letsMove(leader, others)
}

func letsMove(leader *corev1.Node, others []*corev1.Node) error {
	for _, n := range append([]*corev1.Node{leader}, others...) {
		if r := ReadJournal(n).Record; r != nil && r.Phase.InFlight() {
			return Withhold(NodeUnderRepair, "node %s came under repair %s", n.Name, r.ID)
		}
		if err := letsAct(n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}
