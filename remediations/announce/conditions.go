package announce

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reason is the reason of each Node condition that Drydock sets. Only conditions with this reason
// are removed: a client that takes over a condition writes another one.
const Reason = "DrydockRepair"

// Conditions are the condition types that Drydock sets, from KEP-5683, which counts a repair as
// maintenance. Drained is not set, because a drain may end while pods are left, and
// MaintenancePlanned is not, because no maintenance is planned.
var Conditions = []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeMaintenanceInProgress}

// Own reports whether Drydock set the condition.
func Own(c corev1.NodeCondition) bool {
	return c.Reason == Reason && c.Status == corev1.ConditionTrue && slices.Contains(Conditions, c.Type)
}

// Due returns the conditions to set on the Node and the types of those to remove. says returns the
// message of a condition that must be true, or "". It never changes a condition that another client
// has set, whatever its status.
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

// Patch returns the strategic merge patch of nodes/status for the conditions. The API server
// refuses it if the Node has changed since n was read.
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
