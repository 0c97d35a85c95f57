package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// Journal writes on Nodes: one PATCH a change, checked against the version that was read.
type Journal struct{ Client kubernetes.Interface }

var _ engine.Journal = Journal{}

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

// Write applies the change to the Node as it was read.
func (j Journal) Write(ctx context.Context, n *corev1.Node, c engine.NodeChange) (*corev1.Node, error) {
	p := nodePatch{Metadata: patchMeta{UID: n.UID, ResourceVersion: n.ResourceVersion, Annotations: c.Annotations, Labels: c.Labels}}
	p.Spec = map[string]any{}
	if c.Unschedulable != nil {
		p.Spec["unschedulable"] = *c.Unschedulable
	}
	if c.OutOfService != nil || c.InService != nil {
		p.Spec["taints"] = taintsAfter(n, c)
	}
	return patchNode(ctx, j.Client, n.Name, p)
}

func patchNode(ctx context.Context, client kubernetes.Interface, name string, p nodePatch) (*corev1.Node, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of Node %s: %w", name, err)
	}
	written, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: remediations.FieldManager})
	if err != nil {
		return nil, translate("writing on Node "+name, err)
	}
	return Trim(written), nil
}

// OwnsCordon says whether the Node's spec.unschedulable was last set by Drydock.
func (j Journal) OwnsCordon(ctx context.Context, node string) (bool, error) {
	n, err := j.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false, translate("reading who cordoned Node "+node, err)
	}
	for _, f := range n.ManagedFields {
		if f.Manager != remediations.FieldManager || f.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
			return false, fmt.Errorf("reading managedFields of Node %s: %w", node, err)
		}
		if _, ok := fields.Spec["f:unschedulable"]; ok {
			return true, nil
		}
	}
	return false, nil
}
