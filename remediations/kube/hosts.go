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

// Pods finds the node that hosts a pod. It reads each pod from the API server, without a watch or a
// cache.
type Pods struct {
	Client kubernetes.Interface
	// Pods in other namespaces are not read: the right may be missing. Empty means all namespaces.
	Namespaces []string
}

// Hosts returns the pod's node, or "" if it has none yet, does not exist, or is in a namespace that
// is not read. A missing right is an error, so that the alert about the pod is not silently
// dropped.
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
