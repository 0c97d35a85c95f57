package scrapers

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
)

const mostOfAName = 256

func (g *gate) ask(ctx context.Context, token string) (answer, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := g.Tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("asking the API server for a TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return badToken, nil
	}
	u := review.Status.User
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}
	for k, v := range u.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[k] = authorizationv1.ExtraValue(v)
	}
	right, err := g.Rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("asking the API server for a SubjectAccessReview: %w", err)
	}
	if !right.Status.Allowed || right.Status.Denied {
		return forbidden(text.Line(u.Username, mostOfAName)), nil
	}
	return pass, nil
}
