package alertmanager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"drydock.dev/drydock/internal/bounded"
)

// stream reads a JSON list element by element, so that an answer is never in memory as a whole. The
// generated client's own JSON reader would treat an empty body as an empty list, and ignore
// anything after the list.
type stream struct {
	of       string                    // the name of the elements, for example "alerts"
	element  func(*json.Decoder) error // reads exactly one element
	depth    int                       // how many brackets are open before an element that is decoded as a whole; zero means 1
	complete bool                      // the list was read to its end, and nothing follows it
}

// Consume never returns io.EOF, because the generated client ignores that error.
func (s *stream) Consume(body io.Reader, _ any) error {
	each := bounded.Each{Depth: cmp.Or(s.depth, 1), Bytes: maxElementBytes, Values: maxElementValues}
	// The request's own context already ends the reading of the body, so this reader needs no context.
	d := json.NewDecoder(bounded.Limits{Each: each}.Reader(context.Background(), body))
	first, err := d.Token()
	if errors.Is(err, io.EOF) {
		return errors.New("the answer is empty")
	}
	if err != nil {
		return s.unreadable(err)
	}
	if first != json.Delim('[') {
		return fmt.Errorf("the answer is JSON, but not a list of %s", s.of)
	}
	for d.More() {
		if err := s.element(d); err != nil {
			return s.unreadable(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return s.unreadable(err)
	}
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		s.complete = true
		return nil
	case err != nil:
		return s.unreadable(err)
	default:
		return fmt.Errorf("the answer continues after the list of %s", s.of)
	}
}

// An error also means that the list was not read to its end.
func (s *stream) ended(err error) error {
	if err == nil && !s.complete {
		return errors.New("the answer was not read to its end")
	}
	return err
}

// The generated client would ignore io.EOF.
func (s *stream) unreadable(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading the answer as a list of %s: %w", s.of, err)
}

// object refuses anything after the object.
type object struct{}

func (object) Consume(body io.Reader, into any) error {
	whole, err := bounded.Limits{Bytes: maxObjectBytes, Values: maxElementValues}.ReadAll(context.Background(), body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(whole, into); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}
