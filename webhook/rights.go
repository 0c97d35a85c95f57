package webhook

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/remediations/admission"
)

const (
	// The check of one right: half of the 2 s that the API server waits for the whole answer.
	rightsTimeout = time.Second
	// The bytes of a user's name, groups and extras that are sent to the API server: enough for a
	// thousand groups.
	mostOfAUser = 64 << 10
)

// Requests per second that the webhook's clients can cause at the API server. Any client that
// reaches the port can send a review with any user name. A client that may not read Nodes does not
// know a Node's UID, so a review with the correct UID comes from an API server and uses known.
// Others use the smaller strangers, and cannot use up the first one.
type asks struct{ known, strangers, pods *rate.Limiter }

func newAsks() asks {
	return asks{known: rate.NewLimiter(20, 40), strangers: rate.NewLimiter(2, 10), pods: rate.NewLimiter(20, 40)}
}

// The returned function asks the API server, once per verb, whether the requesting user has that
// verb on repairs of the node. known means that the request has the Node's UID.
func (h *handler) may(ctx context.Context, req ctrladmission.Request, node string, known bool) func(verb string) (bool, error) {
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
			a.allowed, a.err = h.review(ctx, req.UserInfo, node, verb, known)
			answers[verb] = a
			if a.err != nil {
				h.say(a.err, "Drydock cannot check a user's right", node, req.UserInfo.Username, verb, "")
			}
		}
		return a.allowed, a.err
	}
}

func (h *handler) review(ctx context.Context, u authenticationv1.UserInfo, node, verb string, known bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	if size := sizeOf(u); size > mostOfAUser {
		return false, fmt.Errorf("%w: the user's name, groups and extras take %d bytes, more than %d", admission.ErrNotAsked, size, mostOfAUser)
	}
	switch {
	case known && h.asks.known.Wait(ctx) != nil, !known && !h.asks.strangers.Allow():
		return false, fmt.Errorf("%w: it checks too many rights at the moment", admission.ErrNotAsked)
	}
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

// Approximate. Each group and extra counts some bytes, even if it is empty.
func sizeOf(u authenticationv1.UserInfo) int {
	const each = 16
	size := len(u.Username) + len(u.UID)
	for _, g := range u.Groups {
		size += len(g) + each
	}
	for k, values := range u.Extra {
		size += len(k) + each
		for _, v := range values {
			size += len(v) + each
		}
	}
	return size
}
