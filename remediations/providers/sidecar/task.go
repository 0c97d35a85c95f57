package sidecar

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"drydock.dev/drydock/remediations"
)

const (
	// The task's ID is in the SeiNodeTask's name, so a second attempt with the same ID creates no
	// second task.
	taskPrefix = "drydock-"
	// taskWait limits the wait until the SeiNode is Running, and taskSeconds the time afterwards.
	// Both are short: when Drydock no longer waits for this approval, another process may change
	// the SeiNode.
	taskWait    = "30s"
	taskSeconds = int64(60)
)

func (c *Client) createTask(ctx context.Context, a *attempt, taskID string, mayStill func() error) error {
	owner := a.saw.Owner
	if owner == (remediations.Object{}) {
		return a.refuse(reasonRejected, nil, "the pod has no SeiNode, which a SeiNodeTask needs; configure via: http for this kind of sidecars")
	}
	task := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": seiNodeTasks.GroupVersion().String(),
		"kind":       "SeiNodeTask",
		"metadata": map[string]any{
			"namespace": owner.Namespace,
			"name":      taskPrefix + taskID,
			"labels":    map[string]any{"app.kubernetes.io/managed-by": "drydock"},
		},
		"spec": map[string]any{
			"kind":           "MarkReady",
			"markReady":      map[string]any{},
			"timeoutSeconds": taskSeconds,
			"target": map[string]any{
				"nodeRef":             map[string]any{"name": owner.Name},
				"requirePhase":        "Running",
				"requirePhaseTimeout": taskWait,
			},
		},
	}}
	if err := lastCheck(ctx, mayStill); err != nil {
		return a.refuse(reasonWithheld, err, "the approval is no longer allowed")
	}
	_, err := c.o.Dynamic.Resource(seiNodeTasks).Namespace(owner.Namespace).Create(ctx, task, metav1.CreateOptions{FieldManager: "drydock"})
	var status apierrors.APIStatus
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return a.refuse(reasonUnauthorized, err, "Drydock's ServiceAccount lacks the right to create seinodetasks.sei.io in namespace %s", owner.Namespace)
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError:
		return a.refuse(reasonRejected, err, "the API server refused the SeiNodeTask")
	case utilnet.IsConnectionRefused(err):
		return a.refuse(reasonFailed, err, "there is no connection to the API server")
	}
	return a.doubt(err, "no answer came to the creation of SeiNodeTask %s%s", taskPrefix, taskID)
}
