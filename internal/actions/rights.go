package actions

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/admission"
)

// Right is one right that an action needs, and whether the user has it.
type Right struct {
	Verb, Resource string
	Allowed        bool
	// Why is the API server's reason, for example which role grants the right.
	Why string
}

// String returns the right and the API server's reason.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Why != "" {
		s += " (" + r.Why + ")"
	}
	return s
}

// Rights returns the rights that the action needs on the node. An empty node means all nodes. If
// verbs is true, that includes an RBAC verb on repairs.drydock.dev, which the admission webhook
// requires unless webhook.rights is false.
func (a *Action) Rights(ctx context.Context, reviews authorizationv1client.SelfSubjectAccessReviewsGetter, node string, verbs bool) ([]Right, error) {
	needed := []authorizationv1.ResourceAttributes{{Resource: "nodes", Verb: "patch", Name: node}}
	if verbs && a.Verb != "" {
		needed = append(needed, authorizationv1.ResourceAttributes{Group: admission.RightsGroup, Resource: admission.RightsResource, Verb: a.Verb, Name: node})
	}
	var out []Right
	for i := range needed {
		r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]}}
		r, err := reviews.SelfSubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking the API server which rights you have: %w", err)
		}
		out = append(out, Right{
			Verb: needed[i].Verb, Resource: strings.TrimSuffix(needed[i].Resource+"."+needed[i].Group, "."),
			Allowed: r.Status.Allowed && !r.Status.Denied, Why: text.Line(cmp.Or(r.Status.Reason, r.Status.EvaluationError), 200),
		})
	}
	return out, nil
}

// Lacking returns which of the rights the user lacks, in a sentence, or "" if the user has all. It
// knows only the API server's answer: admission may still deny the write.
func Lacking(rights []Right) string {
	for _, r := range rights {
		if r.Allowed {
			continue
		}
		why := fmt.Sprintf("you lack the verb %q on %s", r.Verb, r.Resource)
		if r.Why != "" {
			why += " (" + r.Why + ")"
		}
		return why + "; ask an administrator to bind the ClusterRole RELEASE-operator of Drydock's chart, which has this right"
	}
	return ""
}

// Given returns the rights that the user has and what grants them, in a sentence.
func Given(rights []Right) string {
	said := make([]string, len(rights))
	for i, r := range rights {
		said[i] = r.String()
	}
	return strings.Join(said, "; ")
}

// Denied returns which right the user lacks for the action on the node, or "" if the user has all.
func (a *Action) Denied(ctx context.Context, reviews authorizationv1client.SelfSubjectAccessReviewsGetter, node string, verbs bool) (why string, err error) {
	rights, err := a.Rights(ctx, reviews, node, verbs)
	return Lacking(rights), err
}
