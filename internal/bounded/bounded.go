// Package bounded limits the memory for a JSON answer of another program. A limit of bytes is not
// enough: the three bytes `{},` can become a struct of a kilobyte. So the values are counted while
// the answer arrives, before a decoder reads them.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Limits are the limits for one answer. Zero means no limit.
type Limits struct {
	// Bytes is the largest length of the answer.
	Bytes int64
	// Values is the largest number of JSON values, and Objects the largest number of objects among
	// them.
	Values, Objects int
	// Depth is the deepest nesting.
	Depth int
	// Each is for a list that is decoded as a stream.
	Each Each
}

// Each limits each element of a list: its bytes and values. Depth is the number of open brackets
// before an element: 1 in `[…]`, 2 in `{"items":[…]}`.
type Each struct {
	Depth  int
	Bytes  int64
	Values int
}

// ErrTooLarge matches each error that Reader returns because of a limit.
var ErrTooLarge = errors.New("the answer is too large")

type limitError string

func (e limitError) Error() string { return string(e) }

func (limitError) Is(target error) bool { return target == ErrTooLarge }

// Reader returns an error at the first byte beyond a limit, or when ctx ends. The error is not
// io.EOF, so that a truncated answer does not look complete.
func (l Limits) Reader(ctx context.Context, from io.Reader) io.Reader {
	return &reader{Limits: l, ctx: ctx, from: from}
}

// Body is Reader for the body of an HTTP response.
func (l Limits) Body(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{l.Reader(ctx, body), body}
}

// ReadAll reads a complete answer.
func (l Limits) ReadAll(ctx context.Context, from io.Reader) ([]byte, error) {
	return io.ReadAll(l.Reader(ctx, from))
}

type reader struct {
	Limits
	ctx  context.Context // context of the request
	from io.Reader
	err  error // every later Read returns it

	at                     int64 // bytes read so far
	quoted, escaped        bool
	depth, values, objects int
	// began and beganValues are where the current element starts.
	began       int64
	beganValues int
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.err = r.ctx.Err(); r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	if r.err = r.scan(p[:n]); r.err != nil {
		return 0, r.err
	}
	return n, err
}

// scan only counts values. It does not check the syntax, because the decoder rejects invalid JSON.
// For valid JSON, both find the same values.
func (r *reader) scan(text []byte) error {
	for i, c := range text {
		switch {
		case r.escaped:
			r.escaped = false
		case r.quoted:
			r.escaped, r.quoted = c == '\\', c != '"'
		case c == '"':
			r.quoted = true
		case c == ',' || c == '{' || c == '[' || c == '}' || c == ']':
			if err := r.count(c, r.at+int64(i)); err != nil {
				return err
			}
		}
	}
	r.at += int64(len(text))
	if r.Bytes > 0 && r.at > r.Bytes {
		return limitError(fmt.Sprintf("the answer is longer than %d bytes", r.Bytes))
	}
	return r.checkElement(r.at)
}

func (r *reader) count(c byte, at int64) error {
	switch c {
	case '{', '[':
		r.depth++
		r.values++
		if c == '{' {
			r.objects++
		}
	case '}', ']':
		r.depth--
	case ',':
		r.values++
	}
	switch {
	case r.Values > 0 && r.values > r.Values:
		return limitError(fmt.Sprintf("the answer has more than %d values", r.Values))
	case r.Objects > 0 && r.objects > r.Objects:
		return limitError(fmt.Sprintf("the answer has more than %d objects", r.Objects))
	case r.Depth > 0 && r.depth > r.Depth:
		return limitError(fmt.Sprintf("the answer is nested more than %d deep", r.Depth))
	}
	if err := r.checkElement(at); err != nil {
		return err
	}
	if r.depth <= r.Each.Depth {
		r.began, r.beganValues = at+1, r.values
	}
	return nil
}

func (r *reader) checkElement(at int64) error {
	switch {
	case r.Each.Bytes > 0 && at-r.began > r.Each.Bytes:
		return limitError(fmt.Sprintf("an element of the answer is longer than %d bytes", r.Each.Bytes))
	case r.Each.Values > 0 && r.values-r.beganValues > r.Each.Values:
		return limitError(fmt.Sprintf("an element of the answer has more than %d values", r.Each.Values))
	}
	return nil
}
