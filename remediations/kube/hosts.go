package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
)

// Pods says where pods are. They are read one by one: nothing watches or caches them.
type Pods struct{ Client kubernetes.Interface }

// Carrier finds the node that hosts the pod of that name, as remediations.PodNamed reads it.
func (p Pods) Carrier(ctx context.Context, _, name string) (string, error) {
	return p.Hosts(ctx, remediations.PodNamed(name))
}

// Hosts says which node hosts the pod; empty: none does yet, or there is no such pod.
func (p Pods) Hosts(ctx context.Context, pod remediations.Pod) (string, error) {
	found, err := p.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading which node hosts pod %s: %w", pod, err)
	}
	return found.Spec.NodeName, nil
}
