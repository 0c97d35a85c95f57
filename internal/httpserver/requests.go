package httpserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Places bounds what is worked at once. A place is for work alone: take one when the request is
// there, not before.
type Places struct {
	free     *semaphore.Weighted
	places   int
	patience time.Duration
}

// NewPlaces makes so many places. One more request waits for a place for as long as patience.
func NewPlaces(places int, patience time.Duration) *Places {
	return &Places{free: semaphore.NewWeighted(int64(places)), places: places, patience: patience}
}

// Serve has work done in a place. Without a place it answers 503. The answer has no Retry-After: a
// client that waited for that long would miss its own deadline.
func (p *Places) Serve(w http.ResponseWriter, r *http.Request, work func()) {
	if !take(r.Context(), p.free, 1, p.patience) {
		http.Error(w, fmt.Sprintf("%d requests are in progress already; try again later", p.places), http.StatusServiceUnavailable)
		return
	}
	defer p.free.Release(1)
	work()
}

// Requests bounds the requests that next handles at once, for requests without a body.
func Requests(next http.Handler, places int, patience time.Duration) http.Handler {
	p := NewPlaces(places, patience)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Serve(w, r, func() { next.ServeHTTP(w, r) })
	})
}

func take(ctx context.Context, s *semaphore.Weighted, n int64, patience time.Duration) bool {
	if s.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Acquire(ctx, n) == nil
}
