package scrapers

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// reviewsAtOnce is for one lane.
	reviewsAtOnce = 4
	// reviewsPerSecond is an average. reviewsInARow may begin without a pause. One review is two
	// requests to the API server.
	reviewsPerSecond, reviewsInARow = 5, 10
)

type lane struct {
	places chan struct{}
	rate   *rate.Limiter
}

func newLane() *lane {
	return &lane{places: make(chan struct{}, reviewsAtOnce), rate: rate.NewLimiter(reviewsPerSecond, reviewsInARow)}
}

// enter reports whether a review may begin. The caller must then call leave. enter never waits,
// because waiting requests of unknown clients would only hold connections.
func (l *lane) enter(now time.Time) bool {
	select {
	case l.places <- struct{}{}:
	default:
		return false
	}
	if l.rate.AllowN(now, 1) {
		return true
	}
	l.leave()
	return false
}

func (l *lane) leave() { <-l.places }
