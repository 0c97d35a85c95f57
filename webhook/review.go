package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/internal/httpserver"
)

// reviews answers AdmissionReviews of version v1. Each answer other than 200 is a failed call for the API server, which
// then follows the failurePolicy. Nothing that a stranger can cause is logged here.
func reviews(h ctrladmission.Handler) http.Handler {
	bodies := httpserver.NewBodies(maxBody, longestBodiesAtOnce, maxDecoded, patience)
	judge := &ctrladmission.Webhook{Handler: h}
	return httpserver.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || err != nil || kind != "application/json" {
			http.Error(w, "write an AdmissionReview as application/json with POST", http.StatusBadRequest)
			return
		}
		body, release, err := bodies.Read(w, r)
		if err != nil {
			http.Error(w, err.Error(), codeOf(err))
			return
		}
		defer release()
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil {
			http.Error(w, fmt.Sprintf("the body is not an AdmissionReview: %v", err), http.StatusBadRequest)
			return
		}
		if review.Request == nil || review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
			http.Error(w, "the body is not an AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), judgeWithin)
		defer cancel()
		answer := judge.Handle(ctx, ctrladmission.Request{AdmissionRequest: *review.Request})
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &answer.AdmissionResponse})
	}), maxRequests, patience)
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, httpserver.ErrTooLong), errors.Is(err, httpserver.ErrTooMuch):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, httpserver.ErrBusy):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
