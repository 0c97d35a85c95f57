// Package scrapers admits a request only with a bearer token that the API server knows, and whose
// user may read /metrics. It asks the API server with a TokenReview and a SubjectAccessReview, and
// keeps the answers for a short time. A flood of unknown tokens causes a bounded number of reviews,
// and does not block users who were known before.
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
	// allowedFor is how long a scraper may read without a new review, and so how long a removed
	// right still works.
	allowedFor = time.Minute
	// refusedFor is how long an answer of 401 or 403 is kept, and so how long a new right takes to
	// work.
	refusedFor = 10 * time.Second
	// knownFor is how long an allowed token is reviewed separately from unknown tokens.
	knownFor = time.Hour
	// mostAllowed and mostRefused bound the kept answers. Unknown tokens evict only unknown tokens.
	mostAllowed, mostRefused = 64, 256
	// reviewWithin bounds both requests of one review together. Prometheus waits 10 s for a scrape.
	reviewWithin = 3 * time.Second
)

// Options are what a gate needs.
type Options struct {
	Tokens authenticationclient.TokenReviewInterface
	Rights authorizationclient.SubjectAccessReviewInterface
	Clock  clock.PassiveClock
	Log    logr.Logger
}

// Only returns a handler that passes a request to next if its user may get /metrics.
func Only(next http.Handler, o Options) http.Handler {
	return &gate{
		Options: o, next: next, known: newLane(), unknown: newLane(),
		allowed: cache.NewLRUExpireCacheWithClock(mostAllowed, o.Clock), refused: cache.NewLRUExpireCacheWithClock(mostRefused, o.Clock),
	}
}

type gate struct {
	Options
	next http.Handler
	// allowed has the time of the last review by a token's digest. refused has the answer.
	allowed, refused *cache.LRUExpireCache
	// known takes the reviews of tokens in allowed, unknown all others.
	known, unknown *lane
	// reviews joins concurrent requests with the same token before its first review.
	reviews singleflight.Group

	mu      sync.Mutex
	failing bool
}

// answer is what a request gets: 200 passes it on.
type answer struct {
	code int
	says string
}

var (
	pass       = answer{code: http.StatusOK}
	noToken    = answer{http.StatusUnauthorized, "the metrics need a bearer token in the Authorization header: a token of a user or a ServiceAccount that may get /metrics"}
	badToken   = answer{http.StatusUnauthorized, "the API server does not know the bearer token, or the token has expired"}
	busy       = answer{http.StatusServiceUnavailable, "too many unknown tokens wait for the API server's review; try again later"}
	noReviewer = answer{http.StatusServiceUnavailable, "the API server cannot be asked who scrapes; Drydock's log says why"}
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
		// Others may wait for the same review after this client has disconnected.
		return g.review(context.WithoutCancel(ctx), l, key, token), nil
	})
	return a.(answer)
}

// review asks the API server and keeps its answer. A failed request is not kept.
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

// logOnce logs the first failure after a success. Strangers can cause reviews, and must not fill
// the log.
func (g *gate) logOnce(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && !g.failing {
		g.Log.Error(err, "the metrics are refused to everybody until the API server answers who scrapes")
	}
	g.failing = err != nil
}

// forbidden names the user and the missing right.
func forbidden(user string) answer {
	return answer{http.StatusForbidden, fmt.Sprintf("user %q may not get /metrics: bind the user to a ClusterRole with the verb get on nonResourceURLs /metrics", user)}
}
