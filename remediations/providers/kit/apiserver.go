package kit

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodsPerPage is how many pods one page of a list from the API server holds. A node has at most 110
// pods unless its configuration allows more.
const PodsPerPage = 100

// maxSaid is how many bytes of another system's error text Brief keeps.
const maxSaid = 200

// Final reports whether a repeated request would get the same error: rights are missing, or an
// admission policy or webhook refused the request. These are 403, 422 and every other 4xx status,
// except those that pass by themselves.
func Final(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := int(status.Status().Code); code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests: // a freshly started API server may answer 401 to a good token (kubernetes/kubernetes#65785)
		return false
	case http.StatusForbidden:
		// A namespace that is being deleted allows no eviction, but its pods are deleted soon
		// anyway.
		return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	default:
		return code >= 400 && code < 500
	}
}

// Brief returns the error's text, with the causes that make it specific, cut to a bounded length.
func Brief(err error) string {
	said := err.Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			if c.Message != "" && !strings.Contains(said, c.Message) {
				said += " " + c.Message
			}
		}
	}
	if len(said) <= maxSaid {
		return said
	}
	cut := maxSaid
	for !utf8.RuneStart(said[cut]) {
		cut--
	}
	return said[:cut] + "…"
}

// NameOf returns NAMESPACE/NAME of the pod.
func NameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Finished reports whether the pod has succeeded or failed. Such a pod no longer occupies its node.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
