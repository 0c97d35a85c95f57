package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Break cuts the node's kubelet off from the API server: its lease and status are not updated, and
// deleted pods do not end. After NodeGrace, kube-controller-manager sets Ready=Unknown.
func (l *Lab) Break(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken[node] = true
}

// Heal makes the node Ready, with the new boot ID and a fresh lease. An empty boot ID keeps the old
// one, as after a mere network fault. After an error the node is still healthy, but reports that
// only later, with its old boot ID.
func (l *Lab) Heal(ctx context.Context, node, bootID string) error {
	defer l.voice(node)()
	defer l.forget(node)
	now := time.Now()
	// The lease comes first. Otherwise kube-controller-manager might see a Ready node with an old
	// lease.
	if err := l.renewLease(ctx, node, now); err != nil {
		return fmt.Errorf("healing node %s: renewing its lease: %w", node, err)
	}
	if err := l.post(ctx, node, Healthy(now, now), bootID); err != nil {
		return fmt.Errorf("healing node %s: %w", node, err)
	}
	return nil
}

// The next renewal by keepNodes may take up to a third of NodeGrace.
func (l *Lab) renewLease(ctx context.Context, node string, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NewMicroTime(now)}})
	if err != nil {
		return fmt.Errorf("encoding the renewal: %w", err)
	}
	_, err = l.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // keepNodes creates the missing lease
	}
	return err
}

// SetCondition sets a condition of the node until it is set again. Heal removes the conditions that
// are a kubelet's own. A reboot without a cure does not.
func (l *Lab) SetCondition(ctx context.Context, node string, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) error {
	defer l.voice(node)()
	live, err := l.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("setting condition %s of node %s: %w", kind, node, err)
	}
	now := metav1.Now()
	condition := corev1.NodeCondition{
		Type: kind, Status: status, Reason: reason, Message: "set by the lab",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	keepTransition(&condition, live.Status.Conditions)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{condition}}})
	if err != nil {
		return fmt.Errorf("setting condition %s of node %s: encoding it: %w", kind, node, err)
	}
	if err := l.patchStatus(ctx, node, patch); err != nil {
		return fmt.Errorf("setting condition %s of node %s: %w", kind, node, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conditions[node] == nil {
		l.conditions[node] = map[corev1.NodeConditionType]corev1.NodeCondition{}
	}
	l.conditions[node][kind] = condition
	return nil
}

// A condition keeps its transition time while its status is unchanged.
func keepTransition(c *corev1.NodeCondition, before []corev1.NodeCondition) {
	for _, b := range before {
		if b.Type == c.Type && b.Status == c.Status {
			c.LastTransitionTime = b.LastTransitionTime
		}
	}
}

func (l *Lab) forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.broken, node)
	delete(l.off, node)
	delete(l.conditions, node)
}
