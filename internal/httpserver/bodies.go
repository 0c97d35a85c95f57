package httpserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// These are the errors of Bodies.Read.
var (
	ErrTooLong = errors.New("the body is too long")
	// ErrTooMuch means that the body has so many values that it would not fit into the memory for
	// all decoded bodies.
	ErrTooMuch = errors.New("the body has too many values")
	// ErrBusy means that other bodies used all memory for as long as the request could wait.
	ErrBusy = errors.New("other requests occupy the memory for bodies")
)

const (
	// valueBytes is the assumed memory of one decoded JSON value, including the growth of its map or
	// slice. An entry of a map takes about 90 bytes. The largest decoded struct takes 112 bytes and
	// counts as two values.
	valueBytes = 128
	// headBytes of each body are read without a reservation of memory. The limit of connections limits
	// this memory. Nearly all bodies fit into it, so a few long and slow bodies do not delay the
	// others.
	headBytes = 128 << 10
)

// Bodies limits the memory of the JSON bodies of all requests to a server: arriving bytes and
// decoded values. The values must be counted, because three bytes like `{},` can become hundreds
// when decoded.
type Bodies struct {
	longest           int64
	patience          time.Duration
	arriving, decoded *semaphore.Weighted
	weight            int64 // total size of decoded

	mu      sync.Mutex
	arrives map[*http.Request]time.Time // long bodies that are arriving, with the time when each began
}

// NewBodies returns Bodies with memory for atOnce bodies of the length longest, in bytes, or for
// more that are shorter. decoded is the memory for all decoded bodies. A request waits at most
// patience to receive its body, and again to decode it.
func NewBodies(longest int64, atOnce int, decoded int64, patience time.Duration) *Bodies {
	return &Bodies{
		longest: longest, patience: patience, weight: decoded,
		arriving: semaphore.NewWeighted(int64(atOnce) * longest), decoded: semaphore.NewWeighted(decoded),
		arrives: map[*http.Request]time.Time{},
	}
}

// Read returns a request's complete body, which occupies its memory until release is called. With
// an error, release is nil. With ErrTooLong and ErrTooMuch, it also returns the first bytes of the
// body, at most headBytes.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	length := b.longest // the length is unknown
	if r.ContentLength >= 0 {
		length = min(length, r.ContentLength)
	}
	from := http.MaxBytesReader(w, r.Body, b.longest)
	head, err := readHead(from, min(length, headBytes))
	switch {
	case err == nil && r.ContentLength > b.longest:
		return head, nil, ErrTooLong
	case errors.Is(err, io.EOF) && r.ContentLength < 0, err == nil && int64(len(head)) == r.ContentLength:
		return b.weigh(r, head, func() {})
	case err != nil:
		return nil, nil, errOf(err)
	}
	if !b.room(r, length) {
		return nil, nil, ErrBusy
	}
	whole, err := b.readRest(from, r, head, length)
	if err != nil {
		b.arriving.Release(length)
		return head, nil, errOf(err)
	}
	return b.weigh(r, whole, func() { b.arriving.Release(length) })
}

func readHead(from io.Reader, n int64) ([]byte, error) {
	var head bytes.Buffer
	_, err := io.CopyN(&head, from, n)
	return head.Bytes(), err
}

func errOf(err error) error {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return ErrTooLong
	}
	return err
}

// room reserves memory for a body that is longer than headBytes. It returns false if no memory is
// free within the duration b.patience.
//
// If the body that has been arriving for the longest time has taken at least b.patience, room
// closes its connection. After the first close, room waits again, for at most b.patience.
func (b *Bodies) room(r *http.Request, n int64) bool {
	cut := false
	for end := time.Now().Add(b.patience); ; {
		slowest, since := b.slowest()
		wait := time.Until(end)
		if slowest != nil {
			wait = min(wait, max(0, b.patience-time.Since(since)))
		}
		if take(r.Context(), b.arriving, n, wait) {
			return true
		}
		over, had := !time.Now().Before(end), slowest != nil && time.Since(since) >= b.patience
		if r.Context().Err() != nil || over && (cut || !had) {
			return false
		}
		if had {
			b.cut(slowest)
			if !cut { // the memory becomes free when the handler of the closed connection ends
				cut, end = true, time.Now().Add(b.patience)
			}
		}
	}
}

func (b *Bodies) slowest() (slowest *http.Request, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, began := range b.arrives {
		if slowest == nil || began.Before(since) {
			slowest, since = r, began
		}
	}
	return slowest, since
}

func (b *Bodies) cut(r *http.Request) {
	b.mu.Lock()
	_, arrives := b.arrives[r]
	delete(b.arrives, r)
	b.mu.Unlock()
	if c := connOf(r); arrives && c != nil {
		_ = c.Close()
	}
}

func (b *Bodies) readRest(from io.Reader, r *http.Request, head []byte, length int64) ([]byte, error) {
	b.mu.Lock()
	b.arrives[r] = time.Now()
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.arrives, r)
	}()
	whole := make([]byte, length)
	n := copy(whole, head)
	more, err := io.ReadFull(from, whole[n:])
	if r.ContentLength >= 0 {
		return whole, err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return whole[:n+more], nil
	}
	if err == nil { // the body has the full allowed length, so nothing may follow
		if _, err = from.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return whole, err
}

// weigh reserves memory for the decoded body. letGo releases that of the arriving body.
func (b *Bodies) weigh(r *http.Request, body []byte, letGo func()) ([]byte, func(), error) {
	weight := valueBytes * values(body)
	if weight > b.weight {
		letGo()
		return body[:min(len(body), headBytes)], nil, ErrTooMuch
	}
	if !take(r.Context(), b.decoded, weight, b.patience) {
		letGo()
		return nil, nil, ErrBusy
	}
	return body, func() {
		b.decoded.Release(weight)
		letGo()
	}, nil
}

// values returns an upper bound. A string counts as one value, whatever it contains. A text with an
// unclosed string is not JSON, so it is never decoded.
func values(body []byte) int64 {
	n := int64(1)
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case ',', '{', '[':
			n++
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}
