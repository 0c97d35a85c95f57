package scrapers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
)

// slow is an API server that knows every token, and answers about tokens only on the test's
// command.
type slow struct {
	authenticationclient.TokenReviewInterface
	asked  atomic.Int32
	answer chan struct{}
}

func (s *slow) Create(ctx context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	s.asked.Add(1)
	select {
	case <-s.answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: r.Spec.Token}}
	return r, nil
}

// everything is allowed.
type everything struct {
	authorizationclient.SubjectAccessReviewInterface
}

func (everything) Create(_ context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.Status.Allowed = true
	return r, nil
}

// scrapes sends a request with that token and returns the answer's status on a channel.
func scrapes(ctx context.Context, h http.Handler, token string) <-chan int {
	code := make(chan int, 1)
	go func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		code <- w.Code
	}()
	return code
}

func slowly() (*slow, http.Handler) {
	s := &slow{answer: make(chan struct{})}
	return s, Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Options{Tokens: s, Rights: everything{}, Clock: clock.RealClock{}, Log: logr.Discard()})
}

// TestReviewsInFlightAreBounded: those of tokens that were allowed before do not count among them.
func TestReviewsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := slowly()
		prometheus := scrapes(t.Context(), h, "prometheus")
		s.answer <- struct{}{}
		require.Equal(t, 200, <-prometheus)
		time.Sleep(allowedFor)

		var flight []<-chan int
		for i := range reviewsAtOnce {
			flight = append(flight, scrapes(t.Context(), h, fmt.Sprint(i)))
		}
		synctest.Wait()
		require.Equal(t, 503, <-scrapes(t.Context(), h, "one-more"))
		require.EqualValues(t, 1+reviewsAtOnce, s.asked.Load())

		prometheus = scrapes(t.Context(), h, "prometheus")
		synctest.Wait()
		require.EqualValues(t, 2+reviewsAtOnce, s.asked.Load())
		close(s.answer)
		for _, code := range append(flight, prometheus) {
			require.Equal(t, 200, <-code)
		}
		synctest.Wait() // a place is free when its review's goroutine says so
		require.Equal(t, 200, <-scrapes(t.Context(), h, "one-more"))
	})
}

// TestAReviewEnds when the API server is silent: with 503, and its place is free again.
func TestAReviewEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := slowly()
		for i := range 2 * reviewsAtOnce {
			began := time.Now()
			require.Equal(t, 503, <-scrapes(t.Context(), h, fmt.Sprint(i)))
			require.Equal(t, reviewWithin, time.Since(began))
		}
	})
}

// TestOneTokenIsReviewedOnce, however many requests have it at once, even if the first client
// disconnects.
func TestOneTokenIsReviewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := slowly()
		first, leave := context.WithCancelCause(t.Context())
		codes := []<-chan int{scrapes(first, h, "prometheus")}
		synctest.Wait()
		for range 3 * reviewsAtOnce {
			codes = append(codes, scrapes(t.Context(), h, "prometheus"))
		}
		synctest.Wait()
		leave(errors.New("the client has gone"))
		synctest.Wait()
		close(s.answer)
		for _, code := range codes {
			require.Equal(t, 200, <-code)
		}
		require.EqualValues(t, 1, s.asked.Load())
	})
}
