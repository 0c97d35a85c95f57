package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/owners"
)

// NodeWriter writes on Nodes. Each change is one PATCH with the resourceVersion of the Node that
// was read, so it fails if another writer has changed the Node since.
type NodeWriter struct {
	Client kubernetes.Interface
	// See Fleet.Keep.
	Keep []string
}

var _ engine.NodeWriter = NodeWriter{}

type nodePatch struct {
	Metadata patchMeta      `json:"metadata"`
	Spec     map[string]any `json:"spec,omitempty"`
}

type patchMeta struct {
	UID             types.UID          `json:"uid,omitempty"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
}

// Write applies the change if the Node has not changed since it was read. It returns the changed
// Node.
func (w NodeWriter) Write(ctx context.Context, n *corev1.Node, c engine.NodeChange) (*corev1.Node, error) {
	p := nodePatch{Metadata: patchMeta{UID: n.UID, ResourceVersion: n.ResourceVersion, Annotations: c.Annotations, Labels: c.Labels}}
	p.Spec = map[string]any{}
	if c.Unschedulable != nil {
		p.Spec["unschedulable"] = *c.Unschedulable
	}
	if c.OutOfService != nil || c.InService != nil {
		p.Spec["taints"] = taintsAfter(n, c)
	}
	written, err := patchNode(ctx, w.Client, n.Name, p)
	if err != nil {
		return nil, err
	}
	return Trim(written, w.Keep...), nil
}

func patchNode(ctx context.Context, client kubernetes.Interface, name string, p nodePatch) (*corev1.Node, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of Node %s: %w", name, err)
	}
	written, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: remediations.FieldManager})
	if err != nil {
		return nil, translate("writing on Node "+name, unwritten(err))
	}
	return written, nil
}

// unwritten adds engine.ErrUnwritten if the API server has written nothing. This is so for all
// answers of class 4xx: a policy, a webhook, a size limit or a missing right refused the write, or
// the API server was overloaded.
func unwritten(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < http.StatusBadRequest || status.Status().Code >= http.StatusInternalServerError {
		return err
	}
	return fmt.Errorf("%w: %w", engine.ErrUnwritten, err)
}

// OwnsCordon reports whether Drydock is among the owners of the Node's spec.unschedulable,
// according to managedFields.
func (w NodeWriter) OwnsCordon(ctx context.Context, node string) (bool, error) {
	n, err := w.managed(ctx, node)
	if err != nil {
		return false, err
	}
	return owners.Cordon(n)
}

// OwnsAnnotations returns which of the annotations only Drydock owns, according to managedFields.
func (w NodeWriter) OwnsAnnotations(ctx context.Context, node string, keys []string) (owned []string, err error) {
	n, err := w.managed(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		ours, err := owners.Annotation(n, key)
		if err != nil {
			return nil, err
		}
		if ours {
			owned = append(owned, key)
		}
	}
	return owned, nil
}

// SetBy returns the field manager that owns an annotation of the Node, and when it last changed the
// Node. Of several, it is the latest one. A client chooses the name of its field manager itself, so
// the name does not prove who changed the annotation.
func (w NodeWriter) SetBy(ctx context.Context, node, annotation string) (manager string, at time.Time, err error) {
	n, err := w.managed(ctx, node)
	if err != nil {
		return "", time.Time{}, err
	}
	setters, err := owners.Of(n, "f:metadata", "f:annotations", "f:"+annotation)
	for _, o := range setters {
		if o.Time != nil && !o.Time.Time.Before(at) {
			manager, at = o.Manager, o.Time.UTC()
		}
	}
	return manager, at, err
}

// managed reads from the API server, because cached Nodes have no managedFields.
func (w NodeWriter) managed(ctx context.Context, node string) (*corev1.Node, error) {
	n, err := w.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, translate("reading managedFields of Node "+node, err)
	}
	return n, nil
}
