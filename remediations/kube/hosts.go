package kube

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
)

// Pods says where pods are. They are read one by one: nothing watches or caches them.
type Pods struct {
	Client kubernetes.Interface
	// Namespaces are those in which pods are read; empty: all. In others Drydock may have no right to read any.
	Namespaces []string
}

// Carrier finds the node that hosts the pod of that name, as remediations.PodNamed reads it.
func (p Pods) Carrier(ctx context.Context, _, name string) (string, error) {
	return p.Hosts(ctx, remediations.PodNamed(name))
}

// Hosts says which node hosts the pod; empty: none does yet, there is no such pod, or no pod of its namespace is read. A missing
// right in a namespace that is read is an error: the alert is usable, and lost if nobody sends it again.
func (p Pods) Hosts(ctx context.Context, pod remediations.Pod) (string, error) {
	if len(p.Namespaces) > 0 && !slices.Contains(p.Namespaces, pod.Namespace) {
		return "", nil
	}
	found, err := p.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading which node hosts pod %s: %w", pod, err)
	}
	return found.Spec.NodeName, nil
}
