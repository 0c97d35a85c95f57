package kit

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodsPerPage is the number of pods on one page of a list. By default a node has at most 110 pods.
const PodsPerPage = 100

// maxSaid is in bytes.
const maxSaid = 200

// Final reports whether the same request would get the same error, for example because rights are
// missing. It is true for each 4xx status except 401, 408 and 429, and except a 403 from a
// namespace that is being deleted.
func Final(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := int(status.Status().Code); code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests: // a freshly started API server may answer 401 to a good token (kubernetes/kubernetes#65785)
		return false
	case http.StatusForbidden:
		// In a namespace that is being deleted, an eviction gets 403. This error passes, because
		// the pods are deleted soon.
		return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	default:
		return code >= 400 && code < 500
	}
}

// Brief returns the error's text, cut to maxSaid bytes, and the causes that the API server reports.
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

// Finished reports whether the pod has succeeded or failed, and so no longer occupies its node.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
