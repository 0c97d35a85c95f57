// Package scrapers protects /metrics: a request needs a bearer token whose user may get /metrics.
// It asks the API server with a TokenReview and a SubjectAccessReview (a review), and keeps the
// answers for a short time. Many requests with unknown tokens cause only a bounded number of
// reviews, and do not block users that were allowed before.
package scrapers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
)

const (
	// allowedFor is how long a user may read the metrics after an administrator removes the right.
	allowedFor = time.Minute
	// refusedFor is how long a 401 or 403 is kept. So a new right works after this time at the latest.
	refusedFor = 10 * time.Second
	// knownFor is how long an allowed token counts as known. Known tokens have their own limit of
	// reviews, so that many unknown tokens cannot delay them.
	knownFor = time.Hour
	// mostAllowed and mostRefused bound the remembered tokens. They are stored separately, so refused
	// tokens never displace allowed ones.
	mostAllowed, mostRefused = 64, 256
	// reviewWithin bounds both requests of one review. Prometheus' default scrape timeout is 10 s.
	reviewWithin = 3 * time.Second
)

// Options are the options of Only.
type Options struct {
	Tokens authenticationclient.TokenReviewInterface
	Rights authorizationclient.SubjectAccessReviewInterface
	Clock  clock.PassiveClock
	Log    logr.Logger
}

// Only returns a handler that passes a request on to next if its user may get /metrics.
func Only(next http.Handler, o Options) http.Handler {
	return &gate{
		Options: o, next: next, known: newLane(), unknown: newLane(),
		allowed: cache.NewLRUExpireCacheWithClock(mostAllowed, o.Clock), refused: cache.NewLRUExpireCacheWithClock(mostRefused, o.Clock),
	}
}

type gate struct {
	Options
	next http.Handler
	// allowed has the time of the last review. refused has the answer. The key of both is the SHA-256
	// digest of the token.
	allowed, refused *cache.LRUExpireCache
	// known is for tokens in allowed, unknown for all others.
	known, unknown *lane
	// Concurrent requests with the same token share one review.
	reviews singleflight.Group

	mu      sync.Mutex
	failing bool
}

// answer passes the request on if its code is 200.
type answer struct {
	code int
	says string
}

var (
	pass       = answer{code: http.StatusOK}
	noToken    = answer{http.StatusUnauthorized, "the metrics need a bearer token in the Authorization header: a token of a user or a ServiceAccount that may get /metrics"}
	badToken   = answer{http.StatusUnauthorized, "the API server does not know the bearer token, or the token has expired"}
	busy       = answer{http.StatusServiceUnavailable, "too many unknown tokens wait for the API server's review; try again later"}
	noReviewer = answer{http.StatusServiceUnavailable, "the API server did not answer the review of this token; Drydock's log says why"}
)

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := noToken
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		if token = strings.TrimSpace(token); token != "" {
			a = g.answer(r.Context(), token)
		}
	}
	switch a.code {
	case http.StatusOK:
		g.next.ServeHTTP(w, r)
		return
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, a.says, a.code)
}

func (g *gate) answer(ctx context.Context, token string) answer {
	key, l := sha256.Sum256([]byte(token)), g.unknown
	if at, ok := g.allowed.Get(key); ok {
		if g.Clock.Since(at.(time.Time)) < allowedFor {
			return pass
		}
		l = g.known
	}
	if a, ok := g.refused.Get(key); ok {
		return a.(answer)
	}
	a, _, _ := g.reviews.Do(string(key[:]), func() (any, error) {
		// The review continues if this client disconnects, because other requests may wait for it.
		return g.review(context.WithoutCancel(ctx), l, key, token), nil
	})
	return a.(answer)
}

// review keeps the API server's answer, if there is one.
func (g *gate) review(ctx context.Context, l *lane, key [sha256.Size]byte, token string) answer {
	if !l.enter(g.Clock.Now()) {
		return busy
	}
	defer l.leave()
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	a, err := g.ask(ctx, token)
	g.logOnce(err)
	switch {
	case err != nil:
		return noReviewer
	case a == pass:
		g.allowed.Add(key, g.Clock.Now(), knownFor)
	default:
		g.allowed.Remove(key)
		g.refused.Add(key, a, refusedFor)
	}
	return a
}

// logOnce logs only the first failure after a success: every client can cause reviews, and must not
// fill the log.
func (g *gate) logOnce(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && !g.failing {
		g.Log.Error(err, "the API server does not answer reviews of bearer tokens, so requests for /metrics are refused; check that the API server is reachable and that Drydock may create TokenReviews and SubjectAccessReviews")
	}
	g.failing = err != nil
}

func forbidden(user string) answer {
	return answer{http.StatusForbidden, fmt.Sprintf("user %q may not get /metrics: bind the user to a ClusterRole with the verb get on nonResourceURLs /metrics", user)}
}
