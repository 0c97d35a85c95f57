package remediations

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ConditionReason is the reason of each Node condition that Drydock sets. By its reason a condition is Drydock's own: whoever writes
// another reason makes the condition theirs.
const ConditionReason = "DrydockRepair"

// AnnouncedConditions are the conditions of KEP-5683 that Drydock sets: the KEP counts a remediation as maintenance. Drained is not
// among them, because a drain may end while pods are left, nor MaintenancePlanned, because Drydock plans none.
var AnnouncedConditions = []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeMaintenanceInProgress}

// OwnCondition says that Drydock set the condition.
func OwnCondition(c corev1.NodeCondition) bool {
	return c.Reason == ConditionReason && c.Status == corev1.ConditionTrue && slices.Contains(AnnouncedConditions, c.Type)
}

// shows says that the condition is true of the node by the repair on record, from the first intent to the repair's end.
func (r *Record) shows(condition corev1.NodeConditionType) bool {
	if r == nil || r.Intent == nil || r.Phase == Exhausted {
		return false
	}
	return condition == corev1.NodeMaintenanceInProgress || (r.Phase == Acting && r.Step.Name == drain.Name)
}

// ConditionsDue are the conditions to set and to remove, so that those of the Node say what its record says. A condition that somebody
// else set stays as it is, whatever its status. Where the record cannot be read, nothing is due.
func (j Journal) ConditionsDue(n *corev1.Node) (set []corev1.NodeCondition, remove []corev1.NodeConditionType) {
	if j.Malformed != nil {
		return nil, nil
	}
	for _, condition := range AnnouncedConditions {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == condition })
		switch r := j.Record; {
		case i < 0 && r.shows(condition):
			set = append(set, corev1.NodeCondition{
				Type: condition, Status: corev1.ConditionTrue, Reason: ConditionReason,
				Message: fmt.Sprintf("Drydock repairs this node: repair %s by policy %s, set at attempt %s (%s)", r.ID, r.Policy, r.Intent.ID, r.Step),
			})
		case i >= 0 && OwnCondition(n.Status.Conditions[i]) && !r.shows(condition):
			remove = append(remove, condition)
		}
	}
	return set, remove
}

// ConditionsPatch is the strategic merge patch of nodes/status that sets and removes the conditions of the Node as it was read: where the
// Node has changed since, the API server refuses it.
func ConditionsPatch(n *corev1.Node, set []corev1.NodeCondition, remove []corev1.NodeConditionType) ([]byte, error) {
	var conditions []any
	for _, c := range set {
		conditions = append(conditions, c)
	}
	for _, condition := range remove {
		conditions = append(conditions, map[string]any{"$patch": "delete", "type": condition})
	}
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}, "status": map[string]any{"conditions": conditions},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of the conditions of Node %s: %w", n.Name, err)
	}
	return text, nil
}
