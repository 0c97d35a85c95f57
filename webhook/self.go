package webhook

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Self asks the API server for the user name of this process. Only this user may write Drydock's
// own keys.
func Self(ctx context.Context, client kubernetes.Interface) (string, error) {
	r, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking the API server for Drydock's own user name: %w", err)
	}
	if r.Status.UserInfo.Username == "" {
		return "", fmt.Errorf("asking the API server for Drydock's own user name: the answer has no name")
	}
	return r.Status.UserInfo.Username, nil
}

// The name is empty if the pod has no node.
func (h *handler) nodeOf(ctx context.Context, namespace, pod string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	if err := h.asks.pods.Wait(ctx); err != nil {
		return "", fmt.Errorf("reading the pod to be evicted: too many pods are being read: %w", err)
	}
	p, err := h.Pods.Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the pod to be evicted: %w", err)
	}
	return p.Spec.NodeName, nil
}
