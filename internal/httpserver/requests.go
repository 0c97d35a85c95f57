package httpserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Places limits how many requests are processed at the same time. A request takes a place only when
// it has arrived completely.
type Places struct {
	free     *semaphore.Weighted
	places   int
	patience time.Duration
}

// NewPlaces returns Places for that many requests. A further request waits at most patience for a
// place.
func NewPlaces(places int, patience time.Duration) *Places {
	return &Places{free: semaphore.NewWeighted(int64(places)), places: places, patience: patience}
}

// Serve runs work, or answers 503 if no place is free within patience. The answer has no
// Retry-After, because a client that waited for that time would miss its own deadline.
func (p *Places) Serve(w http.ResponseWriter, r *http.Request, work func()) {
	if !take(r.Context(), p.free, 1, p.patience) {
		http.Error(w, fmt.Sprintf("%d requests are already in progress; try again later", p.places), http.StatusServiceUnavailable)
		return
	}
	defer p.free.Release(1)
	work()
}

// Requests returns a handler for requests without a body. places limits how many next handles at
// the same time. A further request waits at most patience.
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
