package kit

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodsPerPage bounds one answer of the API server; a node has 110 pods unless its configuration
// allows more.
const PodsPerPage = 100

// maxSaid bounds what is quoted of an error of another system.
const maxSaid = 200

// Final reports that the API server's answer would be the same the next time: missing rights, or a
// refusal by an admission policy or webhook, with 403, 422 or another code of its own.
func Final(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := int(status.Status().Code); code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests: // an API server that has just started says 401 of a good token (kubernetes/kubernetes#65785)
		return false
	case http.StatusForbidden:
		// In a namespace that is being deleted nothing may be evicted, but its pods will be deleted
		// in a moment.
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

// NameOf is the pod's namespace and name.
func NameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Finished reports that the pod has ended by itself, so that it no longer occupies its node.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
