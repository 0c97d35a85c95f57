package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/internal/text"
)

// For the API server, every answer other than 200 is a failed call, and the failurePolicy decides.
// A request counts against maxRequests only when its whole body has arrived.
func reviews(h *handler) http.Handler {
	bodies := httpserver.NewBodies(maxBody, longestBodiesAtOnce, maxDecoded, patience)
	places := httpserver.NewPlaces(maxRequests, patience)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || err != nil || kind != "application/json" {
			http.Error(w, "send an AdmissionReview as application/json with POST", http.StatusBadRequest)
			return
		}
		body, release, err := bodies.Read(w, r)
		if errors.Is(err, httpserver.ErrTooLong) || errors.Is(err, httpserver.ErrTooMuch) {
			h.answerTooLarge(w, body, err)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), codeOf(err))
			return
		}
		defer release()
		places.Serve(w, r, func() { h.answer(w, r, body) })
	})
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, "the body is not an AdmissionReview: "+text.Line(err.Error(), mostOfAnError), http.StatusBadRequest)
		return
	}
	if review.Request == nil || review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
		http.Error(w, "the body is not an AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), judgeWithin)
	defer cancel()
	answer := (&ctrladmission.Webhook{Handler: h}).Handle(ctx, ctrladmission.Request{AdmissionRequest: *review.Request})
	writeAnswer(w, &answer.AdmissionResponse)
}

func codeOf(err error) int {
	if errors.Is(err, httpserver.ErrBusy) {
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
