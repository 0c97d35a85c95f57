package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// Requests bounds the requests that next handles at once. One more waits for a place for as long as patience, and is then
// answered 503. The answer has no Retry-After: a client that waited for that long would miss its own deadline.
func Requests(next http.Handler, places int, patience time.Duration) http.Handler {
	free := semaphore.NewWeighted(int64(places))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !take(r.Context(), free, 1, patience) {
			http.Error(w, fmt.Sprintf("%d requests are in progress already; try again later", places), http.StatusServiceUnavailable)
			return
		}
		defer free.Release(1)
		next.ServeHTTP(w, r)
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

// What Read answers where it cannot read a body.
var (
	// ErrTooLong: the body is longer than one may be.
	ErrTooLong = errors.New("the body is too long")
	// ErrTooMuch: the body has more values than fit into the memory that all bodies may occupy.
	ErrTooMuch = errors.New("the body has too many values")
	// ErrBusy: other bodies occupied the memory for all of the patience.
	ErrBusy = errors.New("other requests occupy the memory for bodies")
)

// valueBytes is what one JSON value may occupy when it is decoded into a map or a struct, growth of the map or slice
// included. An entry of a map takes about 90 bytes; the largest struct that is decoded takes 112 and counts as two values.
const valueBytes = 128

// Bodies bounds the memory that the JSON bodies of a server's requests occupy together: as bytes while they arrive, and by
// the number of their values when they are decoded. Three bytes such as `{},` can become hundreds.
type Bodies struct {
	longest           int64
	patience          time.Duration
	arriving, decoded *semaphore.Weighted
	weight            int64 // of decoded, in all
}

// NewBodies bounds bodies of up to longest bytes each, of which atOnce fit into the memory; shorter ones fit in greater
// number. Decoded they occupy at most that many bytes. A request waits for memory for as long as patience, twice.
func NewBodies(longest int64, atOnce int, decoded int64, patience time.Duration) *Bodies {
	return &Bodies{
		longest: longest, patience: patience, weight: decoded,
		arriving: semaphore.NewWeighted(int64(atOnce) * longest), decoded: semaphore.NewWeighted(decoded),
	}
}

// Read returns a request's whole body. It counts against the limits until release is called. Beside an error release is
// nil, and the body has been let go.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	length := r.ContentLength
	switch {
	case length > b.longest:
		return nil, nil, ErrTooLong
	case length < 0: // not known, and the buffer grows by doubling
		length = 2 * b.longest
	}
	if !take(r.Context(), b.arriving, length, b.patience) {
		return nil, nil, ErrBusy
	}
	if body, err = b.readAll(w, r); err != nil {
		b.arriving.Release(length)
		return nil, nil, err
	}
	weight := valueBytes * values(body)
	if weight > b.weight {
		b.arriving.Release(length)
		return nil, nil, ErrTooMuch
	}
	if !take(r.Context(), b.decoded, weight, b.patience) {
		b.arriving.Release(length)
		return nil, nil, ErrBusy
	}
	return body, func() {
		b.decoded.Release(weight)
		b.arriving.Release(length)
	}, nil
}

func (b *Bodies) readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, b.longest)
	if r.ContentLength >= 0 {
		whole := make([]byte, r.ContentLength)
		_, err := io.ReadFull(body, whole)
		return whole, err
	}
	whole, err := io.ReadAll(body)
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return nil, ErrTooLong
	}
	return whole, err
}

// values is at least how many values the JSON text has, those within strings included.
func values(body []byte) int64 {
	n := int64(1)
	for _, c := range body {
		if c == ',' || c == '{' || c == '[' {
			n++
		}
	}
	return n
}
