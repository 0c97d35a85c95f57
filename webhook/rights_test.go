package webhook

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// TestRightsAreReviewed: the webhook asks the API server once per verb, with the whole identity of
// the user, and the answer decides.
func TestRightsAreReviewed(t *testing.T) {
	word := func(key, value string) requests.Case {
		return requests.Case{By: requests.Person, Change: requests.Annotate(key, value)}
	}
	removal := requests.Case{By: requests.Person, Before: requests.Annotate(remediations.HistoryKey, "[]"), Change: func(n *corev1.Node) { delete(n.Annotations, remediations.HistoryKey) }}
	for name, c := range map[string]struct {
		word    requests.Case
		status  authorizationv1.SubjectAccessReviewStatus
		err     error
		allowed bool
		reason  admission.Reason
		asked   int
	}{
		"who has it":                {word(remediations.RequestKey, "reboot"), authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, true, admission.ReasonNone, 1},
		"who has it not":            {word(remediations.RequestKey, "reboot"), authorizationv1.SubjectAccessReviewStatus{}, nil, false, admission.ReasonRightMissing, 1},
		"who is denied it":          {word(remediations.ResetKey, "true"), authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, false, admission.ReasonRightMissing, 1},
		"nobody answers":            {word(remediations.RequestKey, "reboot"), authorizationv1.SubjectAccessReviewStatus{}, errors.New("no answer"), false, admission.ReasonRightUnknown, 1},
		"nobody answers a cancel":   {word(remediations.CancelKey, requests.ID), authorizationv1.SubjectAccessReviewStatus{}, errors.New("no answer"), true, admission.ReasonRightUnchecked, 1},
		"nobody answers the glass":  {word(remediations.BreakGlassKey, "why"), authorizationv1.SubjectAccessReviewStatus{}, errors.New("no answer"), true, admission.ReasonRightUnchecked, 1},
		"who may remove":            {removal, authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, true, admission.ReasonNone, 1},
		"who may not remove":        {removal, authorizationv1.SubjectAccessReviewStatus{}, nil, false, admission.ReasonRightMissing, 1},
		"nobody answers a removal":  {removal, authorizationv1.SubjectAccessReviewStatus{}, errors.New("no answer"), false, admission.ReasonRightUnknown, 1},
		"a pause asks for no right": {word(remediations.PauseKey, "true"), authorizationv1.SubjectAccessReviewStatus{}, nil, true, admission.ReasonNone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, remediations.ModeEnforce)
			d.Reviews = d.client.AuthorizationV1().SubjectAccessReviews()
			var specs []authorizationv1.SubjectAccessReviewSpec
			d.client.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
				r := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
				specs = append(specs, r.Spec)
				r.Status = c.status
				return true, r, c.err
			})
			req := request(t, &c.word)
			req.UserInfo.UID, req.UserInfo.Extra = "u1", map[string]authenticationv1.ExtraValue{"scopes": {"a"}}
			res := d.Handle(t.Context(), req)
			require.Equal(t, c.allowed, res.Allowed, "%+v", res)
			require.Len(t, specs, c.asked)
			verdict := allowed
			switch {
			case !c.allowed:
				verdict = denied
			case len(res.Warnings) > 0:
				verdict = warned
			}
			require.Equal(t, 1, d.count(verdict, c.reason))
			for _, s := range specs {
				require.Equal(t, "jane", s.User)
				require.Equal(t, "u1", s.UID)
				require.Equal(t, map[string]authorizationv1.ExtraValue{"scopes": {"a"}}, s.Extra)
				require.Equal(t, &authorizationv1.ResourceAttributes{Group: "drydock.dev", Resource: "repairs", Name: "n1", Verb: s.ResourceAttributes.Verb}, s.ResourceAttributes)
				require.NotEmpty(t, s.ResourceAttributes.Verb)
			}
		})
	}
}
