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
	// Namespaces limits which pods are read, because Drydock may not have the right to read pods in
	// other namespaces. If Namespaces is empty, pods of all namespaces are read.
	Namespaces []string
}

// Hosts returns the name of the pod's node. It returns an empty name if the pod has no node yet,
// does not exist, or is in a namespace that is not read. If the right to read a pod is missing,
// Hosts returns an error, so that the alert about the pod is not silently dropped.
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
