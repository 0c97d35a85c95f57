package kit

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodsPerPage is the number of pods on one page of a list from the API server. By default a node
// has at most 110 pods, so a node's list has one or two pages.
const PodsPerPage = 100

// maxSaid is the maximum length in bytes of the text that Brief returns.
const maxSaid = 200

// Final reports whether the API server refused the request for good, so that the same request would
// get the same error. For example, rights are missing, or an admission webhook refused the request.
// Final is true for each 4xx status except 401, 408 and 429. It is also false for a 403 whose cause
// is a namespace that is being deleted.
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

// Brief returns the error's text, cut to maxSaid bytes. It appends the causes that the API server
// reports, because they have the details.
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
