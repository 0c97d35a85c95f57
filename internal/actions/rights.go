package actions

import (
	"cmp"
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/admission"
)

// Denied says which right the user lacks to ask for it on the node; empty: none. verbs: admission asks for verbs of their own on
// repairs.drydock.dev, as it does unless webhook.rights is false. What is said is not more than what the API server says when it is
// asked: admission decides about the write itself.
func (a *Action) Denied(ctx context.Context, reviews authorizationv1client.SelfSubjectAccessReviewsGetter, node string, verbs bool) (why string, err error) {
	needed := []authorizationv1.ResourceAttributes{{Resource: "nodes", Verb: "patch", Name: node}}
	if verbs && a.Verb != "" {
		needed = append(needed, authorizationv1.ResourceAttributes{Group: admission.RightsGroup, Resource: admission.RightsResource, Verb: a.Verb, Name: node})
	}
	for i := range needed {
		r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]}}
		r, err := reviews.SelfSubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("asking which rights you have: %w", err)
		}
		if r.Status.Allowed && !r.Status.Denied {
			continue
		}
		resource := needed[i].Resource
		if needed[i].Group != "" {
			resource += "." + needed[i].Group
		}
		why := fmt.Sprintf("you lack the verb %q on %s", needed[i].Verb, resource)
		if said := text.Line(cmp.Or(r.Status.Reason, r.Status.EvaluationError), 200); said != "" {
			why += " (" + said + ")"
		}
		return why + "; the ClusterRole drydock-operator of Drydock's chart has it: ask an administrator to bind that role", nil
	}
	return "", nil
}
