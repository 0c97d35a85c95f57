package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab/sidecarsim"
)

const (
	seidContainer    = "seid"
	sidecarContainer = "sei-sidecar"
	proxyContainer   = "kube-rbac-proxy"
	sidecarPort      = "api"
)

// SeidImage is the image that a SeiNode in the lab has and wants.
const SeidImage = "sei.example/seid:v6.3.0"

// SeiNodeSpec describes a SeiNode and its StatefulSet.
type SeiNodeSpec struct {
	Namespace, Name string // the default of Namespace is default
	Node            string // the node of its pod, because a lab has no scheduler
	NoProxy         bool   // without kube-rbac-proxy: the sidecar accepts every client
	Plain           bool   // only a StatefulSet without a SeiNode, as without Sei's controller
	Labels          map[string]string
}

// Pod returns the key of its pod in sidecarsim.
func (s SeiNodeSpec) Pod() string { return s.namespace() + "/" + s.Name + "-0" }

func (s SeiNodeSpec) namespace() string {
	if s.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return s.Namespace
}

// AddSeiNodes creates SeiNodes whose pods run with an open gate.
func (s *Sidecars) AddSeiNodes(ctx context.Context, specs ...SeiNodeSpec) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, spec := range specs {
		g.Go(func() error {
			if err := s.addSeiNode(ctx, spec); err != nil {
				return fmt.Errorf("adding SeiNode %s/%s: %w", spec.namespace(), spec.Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (s *Sidecars) addSeiNode(ctx context.Context, spec SeiNodeSpec) error {
	meta := metav1.ObjectMeta{Name: spec.namespace()}
	_, err := s.lab.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	set := s.statefulSet(spec)
	if !spec.Plain {
		owner, err := s.createSeiNode(ctx, spec)
		if err != nil {
			return err
		}
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, SeiNodes.GroupVersion().WithKind("SeiNode"))}
	}
	if _, err := s.lab.client.AppsV1().StatefulSets(spec.namespace()).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	err = s.Await(ctx, func() bool {
		_, runs := s.Pod(spec.Pod())
		return runs
	})
	if err != nil {
		return err
	}
	return s.Open(spec.Pod())
}

func (s *Sidecars) createSeiNode(ctx context.Context, spec SeiNodeSpec) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": SeiNodes.GroupVersion().String(), "kind": "SeiNode",
		"metadata": map[string]any{"name": spec.Name, "namespace": spec.namespace()},
		"spec":     map[string]any{"chainId": "lab-1", "image": SeidImage, "fullNode": map[string]any{}},
	}}
	created, err := s.dynamic.Resource(SeiNodes).Namespace(spec.namespace()).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return created, s.PatchSeiNodeStatus(ctx, spec.namespace(), spec.Name, map[string]any{
		"phase": "Running", "currentImage": SeidImage,
		"conditions": []any{map[string]any{
			"type": "SidecarReady", "status": "True", "reason": "Ready", "message": "",
			"lastTransitionTime": created.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z"),
		}},
	})
}

// PatchSeiNode changes keys of a SeiNode's spec, for example paused or image.
func (s *Sidecars) PatchSeiNode(ctx context.Context, namespace, name string, spec map[string]any) error {
	return s.patchSeiNode(ctx, namespace, name, map[string]any{"spec": spec})
}

// PatchSeiNodeStatus changes keys of a SeiNode's status. A nil value removes the key.
func (s *Sidecars) PatchSeiNodeStatus(ctx context.Context, namespace, name string, status map[string]any) error {
	return s.patchSeiNode(ctx, namespace, name, map[string]any{"status": status}, "status")
}

func (s *Sidecars) patchSeiNode(ctx context.Context, namespace, name string, patch map[string]any, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a change of SeiNode %s/%s: %w", namespace, name, err)
	}
	_, err = s.dynamic.Resource(SeiNodes).Namespace(namespace).Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("changing SeiNode %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Sei's controller makes the same StatefulSet: one pod with the container of the chain's node, the
// sidecar and the proxy.
func (s *Sidecars) statefulSet(spec SeiNodeSpec) *appsv1.StatefulSet {
	labels := map[string]string{SeiNodeLabel: spec.Name, "sei.io/chain": "lab-1", "sei.io/role": "full"}
	maps.Copy(labels, spec.Labels)
	port := []corev1.ContainerPort{{Name: sidecarPort, ContainerPort: int32(s.Port()), Protocol: corev1.ProtocolTCP}}
	containers := []corev1.Container{{Name: seidContainer, Image: SeidImage}, {Name: sidecarContainer, Image: "sei.example/sidecar:v1"}}
	if spec.NoProxy {
		containers[1].Ports = port
	} else {
		containers = append(containers, corev1.Container{Name: proxyContainer, Image: "sei.example/kube-rbac-proxy:v1", Ports: port})
	}
	one := int32(1)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &one, ServiceName: spec.Name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{SeiNodeLabel: spec.Name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{NodeName: spec.Node, Containers: containers},
			},
		},
	}
}

// ReplacePod deletes a SeiNode's pod, as a drain does, and returns the new pod when its sidecar
// answers. The sidecar answers 503, because the gate of a new pod is closed.
func (s *Sidecars) ReplacePod(ctx context.Context, spec SeiNodeSpec) (sidecarsim.Pod, error) {
	old, runs := s.Pod(spec.Pod())
	if !runs {
		return old, fmt.Errorf("replacing pod %s: it does not run", spec.Pod())
	}
	if err := s.lab.client.CoreV1().Pods(old.Namespace).Delete(ctx, old.Name, metav1.DeleteOptions{}); err != nil {
		return old, fmt.Errorf("replacing pod %s: %w", spec.Pod(), err)
	}
	now := old
	err := s.Await(ctx, func() bool {
		now, runs = s.Pod(spec.Pod())
		return runs && now.UID != old.UID
	})
	if err != nil {
		return old, fmt.Errorf("replacing pod %s: %w", spec.Pod(), err)
	}
	return now, nil
}

// MovePod is ReplacePod, but the new pod is on another node.
func (s *Sidecars) MovePod(ctx context.Context, spec SeiNodeSpec, node string) (sidecarsim.Pod, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeName": node}}}})
	if err != nil {
		return sidecarsim.Pod{}, fmt.Errorf("encoding the move of pod %s: %w", spec.Pod(), err)
	}
	old, _ := s.Pod(spec.Pod())
	sets := s.lab.client.AppsV1().StatefulSets(spec.namespace())
	// Changing the StatefulSet replaces the pod, by its rolling update.
	if _, err := sets.Patch(ctx, spec.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return old, fmt.Errorf("moving pod %s to node %s: %w", spec.Pod(), node, err)
	}
	now := old
	err = s.Await(ctx, func() bool {
		var runs bool
		now, runs = s.Pod(spec.Pod())
		return runs && now.Node == node
	})
	if err != nil {
		return old, fmt.Errorf("moving pod %s to node %s: %w", spec.Pod(), node, err)
	}
	return now, nil
}
