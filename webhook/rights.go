package webhook

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/remediations/admission"
)

// rightsTimeout bounds what a review of a right may take: half of the 2 s that the API server gives the whole answer.
const rightsTimeout = time.Second

// may asks the API server whether whoever makes the request has the verb on repairs of the node, once for each verb.
func (h *handler) may(ctx context.Context, req ctrladmission.Request, node string) func(verb string) (bool, error) {
	if h.Reviews == nil {
		return nil
	}
	type answer struct {
		allowed bool
		err     error
	}
	answers := map[string]answer{}
	return func(verb string) (bool, error) {
		a, asked := answers[verb]
		if !asked {
			a.allowed, a.err = h.review(ctx, req, node, verb)
			answers[verb] = a
			if a.err != nil {
				h.Log.Error(a.err, "a right cannot be checked", "user", req.UserInfo.Username, "operation", verb, "node", node)
			}
		}
		return a.allowed, a.err
	}
}

func (h *handler) review(ctx context.Context, req ctrladmission.Request, node, verb string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	u := req.UserInfo
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: admission.RightsGroup, Resource: admission.RightsResource, Name: node, Verb: verb,
		},
	}
	for k, v := range u.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[k] = authorizationv1.ExtraValue(v)
	}
	r, err := h.Reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the API server for a SubjectAccessReview: %w", err)
	}
	return r.Status.Allowed && !r.Status.Denied, nil
}
