package lab

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Forget removes what Drydock and people left on the Nodes, including cordons, and replaces the
// ledger.
func (l *Lab) Forget(ctx context.Context, ledger *ledger.Ledger) error {
	nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Nodes: %w", err)
	}
	for _, n := range nodes.Items {
		gone := map[string]any{}
		for k := range n.Annotations {
			if remediations.Relevant(k) {
				gone[k] = nil
			}
		}
		if len(gone) == 0 && n.Labels[remediations.PhaseLabel] == "" && n.Labels[remediations.ExcludeLabel] == "" && !n.Spec.Unschedulable {
			continue
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": gone, "labels": map[string]any{remediations.PhaseLabel: nil, remediations.ExcludeLabel: nil}},
			"spec":     map[string]any{"unschedulable": nil},
		})
		if err != nil {
			return fmt.Errorf("encoding a patch: %w", err)
		}
		if _, err := l.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("taking what was left off node %s: %w", n.Name, err)
		}
	}
	return l.WriteLedger(ctx, ledger)
}

// WriteLedger writes the ledger as Drydock does, without a running Drydock.
func (l *Lab) WriteLedger(ctx context.Context, ledger *ledger.Ledger) error {
	_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the namespace of the ledger: %w", err)
	}
	maps := l.client.CoreV1().ConfigMaps(Namespace)
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "drydock-ledger", Labels: map[string]string{"app.kubernetes.io/name": "drydock", "app.kubernetes.io/component": "ledger"}},
		Data:       ledger.Encode(),
	}
	if _, err = maps.Update(ctx, made, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, made, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}
