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

// Pods finds the nodes of pods. It reads each pod from the API server, without a watch or a cache.
type Pods struct {
	Client kubernetes.Interface
	// Namespaces are the only namespaces whose pods are read. If Namespaces is empty, pods of all
	// namespaces are read. In other namespaces Drydock may not have the right to read pods.
	Namespaces []string
}

// Hosts returns the node of the pod. It returns an empty name if the pod has no node yet, if there
// is no such pod, or if pods of its namespace are not read. If the right to read pods is missing in
// a namespace that should be read, it returns an error, so that the alert is not silently dropped.
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
