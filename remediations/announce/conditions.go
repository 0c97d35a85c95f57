package announce

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reason is the reason of each Node condition that Drydock sets. It marks the condition as
// Drydock's own: a client that writes another reason makes the condition its own.
const Reason = "DrydockRepair"

// Conditions are those of KEP-5683 that Drydock sets: the KEP counts a remediation as maintenance.
// Drained is not among them, because a drain may end while pods are left, nor MaintenancePlanned,
// because Drydock plans none.
var Conditions = []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeMaintenanceInProgress}

// Own reports that Drydock set the condition.
func Own(c corev1.NodeCondition) bool {
	return c.Reason == Reason && c.Status == corev1.ConditionTrue && slices.Contains(Conditions, c.Type)
}

// Due returns the conditions to set and to remove, so that the Node's conditions agree with its
// record. says returns the message of each condition that is true of the node, and is empty for the
// others. A condition that another client set stays as it is, whatever its status.
func Due(n *corev1.Node, says func(corev1.NodeConditionType) string) (set []corev1.NodeCondition, remove []corev1.NodeConditionType) {
	for _, condition := range Conditions {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == condition })
		switch message := says(condition); {
		case i < 0 && message != "":
			set = append(set, corev1.NodeCondition{Type: condition, Status: corev1.ConditionTrue, Reason: Reason, Message: message})
		case i >= 0 && Own(n.Status.Conditions[i]) && message == "":
			remove = append(remove, condition)
		}
	}
	return set, remove
}

// Patch returns the strategic merge patch of nodes/status that sets and removes the conditions of
// the Node as it was read: if the Node has changed since, the API server refuses the patch.
func Patch(n *corev1.Node, set []corev1.NodeCondition, remove []corev1.NodeConditionType) ([]byte, error) {
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
