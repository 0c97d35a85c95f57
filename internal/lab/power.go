package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Off takes the node's machine down until On or Heal: its kubelet renews no lease and posts no
// status. After NodeGrace, kube-controller-manager sets all conditions of the kubelet to Unknown.
func (l *Lab) Off(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off[node] = true
}

// On brings the machine up after Off. If cured is false, it keeps the conditions that SetCondition
// set, and a kubelet that Break cut off stays silent.
//
// A kubelet that has just started first reports its new boot ID, no pressure, and not Ready. Its
// second status has the faults that it finds.
func (l *Lab) On(ctx context.Context, node, bootID string, cured bool) error {
	defer l.voice(node)()
	l.mu.Lock()
	silent := l.broken[node] && !cured
	if cured {
		delete(l.conditions, node)
	}
	l.mu.Unlock()
	if !silent {
		now := time.Now()
		if err := l.renewLease(ctx, node, now); err != nil {
			return fmt.Errorf("bringing node %s back: renewing its lease: %w", node, err)
		}
		starting := Healthy(now, now)
		for i := range starting {
			if c := &starting[i]; c.Type == corev1.NodeReady {
				c.Status, c.Reason, c.Message = corev1.ConditionFalse, "KubeletNotReady", "container runtime status check may not have completed yet"
			}
		}
		if err := l.post(ctx, node, starting, bootID); err != nil {
			return fmt.Errorf("bringing node %s back: %w", node, err)
		}
		if err := l.post(ctx, node, l.found(node, now), ""); err != nil {
			return fmt.Errorf("bringing node %s back: %w", node, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.off, node)
	if cured {
		delete(l.broken, node)
	}
	return nil
}

// Only one caller at a time computes and posts a status, until done is called. Otherwise a reboot
// that ends while a test heals the node could post last, with the old fault.
func (l *Lab) voice(node string) (done func()) {
	l.mu.Lock()
	voice := l.voices[node]
	if voice == nil {
		voice = &sync.Mutex{}
		l.voices[node] = voice
	}
	l.mu.Unlock()
	voice.Lock()
	return voice.Unlock
}

// found returns healthy conditions, except for those that SetCondition set.
func (l *Lab) found(node string, now time.Time) []corev1.NodeCondition {
	l.mu.Lock()
	defer l.mu.Unlock()
	conditions := Healthy(now, now)
	for i, c := range conditions {
		if set, ok := l.conditions[node][c.Type]; ok {
			conditions[i] = set
			conditions[i].LastHeartbeatTime, conditions[i].LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		}
	}
	return conditions
}

// An empty bootID is not posted.
func (l *Lab) post(ctx context.Context, node string, conditions []corev1.NodeCondition, bootID string) error {
	live, err := l.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range conditions {
		keepTransition(&conditions[i], live.Status.Conditions)
	}
	status := map[string]any{"conditions": conditions}
	if bootID != "" {
		status["nodeInfo"] = map[string]any{"bootID": bootID}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding its status: %w", err)
	}
	if err := l.patchStatus(ctx, node, patch); err != nil {
		return fmt.Errorf("patching its status: %w", err)
	}
	return nil
}

func (l *Lab) isOff(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off[node]
}
