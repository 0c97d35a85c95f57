package scrapers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// door is a gate in front of "the metrics", with an API server that knows the tokens good, poor and
// barred, and others of their users, for example good-2. Only good's user may get /metrics.
type door struct {
	*testing.T
	http.Handler
	clock *clocktesting.FakeClock
	log   []string

	rights, poor        bool // good, and poor, may get /metrics
	away, awayForRights error
	tokens              []string
	asked               []authorizationv1.SubjectAccessReviewSpec
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{T: t, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), rights: true}
	c := fake.NewClientset()
	c.PrependReactor("create", "tokenreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		r := a.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		d.tokens = append(d.tokens, r.Spec.Token)
		require.Empty(t, r.Spec.Audiences, "the API server's own audience")
		if user, _, _ := strings.Cut(r.Spec.Token, "-"); slices.Contains([]string{"good", "poor", "barred"}, user) {
			r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: user, UID: "u1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}},
			}}
		}
		return true, r, d.away
	})
	c.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		r := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		d.asked = append(d.asked, r.Spec)
		r.Status.Denied = r.Spec.User == "barred" // by an authorizer that goes before all others
		r.Status.Allowed = r.Status.Denied || r.Spec.User == "good" && d.rights || r.Spec.User == "poor" && d.poor
		return true, r, d.awayForRights
	})
	d.Handler = Only(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the metrics") }), Options{
		Tokens: c.AuthenticationV1().TokenReviews(), Rights: c.AuthorizationV1().SubjectAccessReviews(), Clock: d.clock,
		Log: funcr.New(func(_, args string) { d.log = append(d.log, args) }, funcr.Options{}),
	})
	return d
}

// scrape sends a request with that header and returns the answer.
func (d *door) scrape(authorization string) *httptest.ResponseRecorder {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), http.MethodGet, "/metrics", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	require.Equal(d, w.Code == http.StatusOK, w.Body.String() == "the metrics", "%d %s", w.Code, w.Body)
	require.Equal(d, w.Code == http.StatusUnauthorized, w.Header().Get("WWW-Authenticate") == "Bearer")
	return w
}

// TestWhoMayScrape is the whole table.
func TestWhoMayScrape(t *testing.T) {
	gone := errors.New("connection refused")
	for name, tc := range map[string]struct {
		authorization       string
		away, awayForRights error
		code                int
		says                string
		tokens, rights      int
	}{
		"no token":                            {"", nil, nil, 401, "a bearer token in the Authorization header", 0, 0},
		"an empty token":                      {"Bearer  ", nil, nil, 401, "a bearer token", 0, 0},
		"a password":                          {"Basic Z29vZA==", nil, nil, 401, "a bearer token", 0, 0},
		"a bad token":                         {"Bearer forged", nil, nil, 401, "does not know the bearer token", 1, 0},
		"a good token without the right":      {"Bearer poor", nil, nil, 403, `user "poor" may not get /metrics: bind the user to a ClusterRole with the verb get on nonResourceURLs /metrics`, 1, 1},
		"a good token that is denied it":      {"Bearer barred", nil, nil, 403, `user "barred" may not`, 1, 1},
		"a good token with the right":         {"Bearer good", nil, nil, 200, "", 1, 1},
		"its scheme in small letters":         {"bearer good", nil, nil, 200, "", 1, 1},
		"nobody answers about the token":      {"Bearer good", gone, nil, 503, "did not answer the review", 1, 0},
		"nobody answers about the right":      {"Bearer good", nil, gone, 503, "did not answer the review", 1, 1},
		"nobody answers, and there is none":   {"", gone, nil, 401, "a bearer token", 0, 0},
		"nobody answers about a forged token": {"Bearer forged", gone, nil, 503, "did not answer the review", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			d.away, d.awayForRights = tc.away, tc.awayForRights
			w := d.scrape(tc.authorization)
			require.Equal(t, tc.code, w.Code)
			require.Contains(t, w.Body.String(), tc.says)
			require.NotContains(t, w.Body.String(), "refused", "the cause is for the log")
			require.Len(t, d.tokens, tc.tokens)
			require.Len(t, d.asked, tc.rights)
			for _, spec := range d.asked {
				require.Equal(t, authorizationv1.SubjectAccessReviewSpec{
					User: d.tokens[0], UID: "u1", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"pod": {"p"}},
					NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
				}, spec)
			}
		})
	}
}

// TestAnswersAreKeptForAShortTime: a removed right still works for a minute, a new one works after
// ten seconds.
func TestAnswersAreKeptForAShortTime(t *testing.T) {
	d := newDoor(t)
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	require.Equal(t, 403, d.scrape("Bearer poor").Code)
	require.Equal(t, 401, d.scrape("Bearer forged").Code)
	d.rights, d.poor = false, true
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	require.Equal(t, 403, d.scrape("Bearer poor").Code)
	require.Equal(t, 401, d.scrape("Bearer forged").Code)
	require.Len(t, d.tokens, 3, "each was asked about once")

	d.clock.Step(refusedFor + time.Nanosecond)
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	require.Equal(t, 200, d.scrape("Bearer poor").Code)
	require.Equal(t, 401, d.scrape("Bearer forged").Code)
	require.Len(t, d.tokens, 5)

	d.clock.Step(allowedFor - refusedFor)
	require.Equal(t, 403, d.scrape("Bearer good").Code)
	d.rights = true
	require.Equal(t, 403, d.scrape("Bearer good").Code)
	d.clock.Step(refusedFor + time.Nanosecond)
	require.Equal(t, 200, d.scrape("Bearer good").Code)
}

// TestNoOneReadsMetricsWhileTheAPIServerIsAway, except users who were allowed less than a minute
// ago. The failure is not kept.
func TestNoOneReadsMetricsWhileTheAPIServerIsAway(t *testing.T) {
	d := newDoor(t)
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	d.away = errors.New("connection refused")
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	d.clock.Step(allowedFor)
	for range 3 {
		require.Equal(t, 503, d.scrape("Bearer good").Code)
		require.Equal(t, 503, d.scrape("Bearer poor").Code)
	}
	require.Len(t, d.log, 1, "%v", d.log)
	require.Contains(t, d.log[0], "connection refused")
	d.away = nil
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	require.Equal(t, 403, d.scrape("Bearer poor").Code)
}

// TestAFloodOfTokensCausesFewReviews: it also does not block users who were allowed before. The
// control: without the flood, an unknown token is reviewed at once.
func TestAFloodOfTokensCausesFewReviews(t *testing.T) {
	d := newDoor(t)
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	d.clock.Step(allowedFor)
	const seconds = 20
	codes := map[int]int{}
	for second := range seconds {
		for i := range 2 * mostAllowed {
			codes[d.scrape(fmt.Sprintf("Bearer forged-%d-%d", second, i)).Code]++
		}
		require.Equal(t, 503, d.scrape("Bearer poor").Code)
		d.clock.Step(time.Second)
	}
	require.Len(t, codes, 2)
	require.Equal(t, len(d.tokens)-1, codes[401])
	require.LessOrEqual(t, len(d.tokens), 1+reviewsInARow+seconds*reviewsPerSecond)
	before := len(d.tokens)
	require.Equal(t, 200, d.scrape("Bearer good").Code)
	require.Len(t, d.tokens, before+1, "it was reviewed anew")

	d.clock.Step(time.Second)
	require.Equal(t, 403, d.scrape("Bearer poor").Code)

	// A token that lost its right is treated like an unknown one.
	d.rights = false
	d.clock.Step(allowedFor)
	require.Equal(t, 403, d.scrape("Bearer good").Code)
	d.clock.Step(refusedFor + time.Nanosecond)
	for i := range 2 * reviewsInARow {
		d.scrape(fmt.Sprint("Bearer forged again ", i))
	}
	require.Equal(t, 503, d.scrape("Bearer good").Code)
}

// flood uses up the budget of strangers.
func (d *door) flood() {
	d.Helper()
	for i := range 2 * reviewsInARow {
		d.scrape(fmt.Sprint("Bearer forged ", len(d.tokens), " ", i))
	}
	require.Equal(d, 503, d.scrape("Bearer poor-9").Code, "strangers get no more")
}

// TestAllowedTokensAreRememberedForAnHour: during that time a flood does not block them.
func TestAllowedTokensAreRememberedForAnHour(t *testing.T) {
	for after, code := range map[time.Duration]int{time.Hour - time.Second: 200, time.Hour + time.Second: 503} {
		d := newDoor(t)
		require.Equal(t, 200, d.scrape("Bearer good").Code)
		d.clock.Step(after)
		d.flood()
		require.Equal(t, code, d.scrape("Bearer good").Code, "after %s", after)
	}
}

// TestAnswersThatAreKeptAreBounded: 64 tokens that were allowed, without the oldest, and 256 that
// were refused.
func TestAnswersThatAreKeptAreBounded(t *testing.T) {
	for tokens, code := range map[int]int{64: 200, 65: 503} {
		d := newDoor(t)
		for i := range tokens {
			require.Equal(t, 200, d.scrape(fmt.Sprint("Bearer good-", i)).Code)
			d.clock.Step(time.Second)
		}
		d.clock.Step(allowedFor)
		d.flood()
		require.Equal(t, code, d.scrape("Bearer good-0").Code, "the first of %d", tokens)
		require.Equal(t, 200, d.scrape(fmt.Sprint("Bearer good-", tokens-1)).Code)
	}
	g := newDoor(t).Handler.(*gate) // no flood of one lane comes so far within refusedFor
	for i := range 300 {
		g.refused.Add(i, badToken, refusedFor)
	}
	require.Len(t, g.refused.Keys(), 256)
}
