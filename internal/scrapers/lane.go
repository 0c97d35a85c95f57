package scrapers

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// reviewsAtOnce bounds the reviews in flight of one lane.
	reviewsAtOnce = 4
	// reviewsPerSecond and reviewsInARow bound their rate. One review is two requests to the API
	// server.
	reviewsPerSecond, reviewsInARow = 5, 10
)

// lane bounds reviews, both concurrent ones and their rate.
type lane struct {
	places chan struct{}
	rate   *rate.Limiter
}

func newLane() *lane {
	return &lane{places: make(chan struct{}, reviewsAtOnce), rate: rate.NewLimiter(reviewsPerSecond, reviewsInARow)}
}

// enter takes a free place or fails at once: a queue of strangers would only hold connections.
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
