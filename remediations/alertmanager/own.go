package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/silence"
	"github.com/prometheus/alertmanager/api/v2/models"

	"drydock.dev/drydock/internal/replicas"
)

// ErrSilenceMayExist means that a replica may have made the silence although it did not confirm it.
// Its id is unknown, and it ends at its EndsAt.
var ErrSilenceMayExist = errors.New("the silence may exist nevertheless")

// NewSilence is a silence to make. All fields are required.
type NewSilence struct {
	// Labels and the values that they must equal. An empty value is refused, because it would match
	// every alert without the label.
	Matchers map[string]string
	// StartsAt may be in the past: Alertmanager then starts the silence at once.
	StartsAt, EndsAt time.Time
	// Author and Comment are for people to read.
	Author, Comment string
}

// Silence makes a silence on the first replica that accepts it; replicas with gossip pass it on. It
// tries the next replica if one cannot be reached or answers 3xx or 4xx, each with its own timeout.
// After any other failure the silence may exist, so Silence makes no second one and returns
// ErrSilenceMayExist.
func (c *Client) Silence(ctx context.Context, s NewSilence) (id string, err error) {
	posted, err := s.postable()
	if err != nil {
		return "", fmt.Errorf("making a silence: %w", err)
	}
	var passed []error
	for _, seat := range c.seats(ctx) {
		if seat.replica == nil {
			passed = append(passed, seat.failed.Err)
			continue
		}
		id, err := seat.replica.postSilence(ctx, posted)
		if err == nil {
			return id, nil
		}
		err = fmt.Errorf("making a silence on Alertmanager %s: %w", seat.replica.url, err)
		if errors.Is(err, ErrSilenceMayExist) {
			return "", err
		}
		passed = append(passed, err)
	}
	return "", errors.Join(passed...)
}

// Expire ends a silence on every replica that knows it. It succeeds when one replica confirms the
// end: one with gossip informs the others, and one without is the only one that knows the id. It
// also succeeds when no replica knows the id, or the silence has already ended. It may be repeated.
func (c *Client) Expire(ctx context.Context, id string) error {
	if !strfmt.IsUUID(id) {
		return fmt.Errorf("ending the silence %.64q: this is not the id of a silence", id)
	}
	seats := c.seats(ctx)
	failed := make([]error, len(seats))
	var ended atomic.Bool
	var wg sync.WaitGroup
	for i, seat := range seats {
		if seat.replica == nil {
			failed[i] = seat.failed.Err
			continue
		}
		wg.Go(func() {
			known, err := seat.replica.deleteSilence(ctx, id)
			if err != nil {
				failed[i] = fmt.Errorf("ending the silence %s on Alertmanager %s: %w", id, seat.replica.url, err)
			}
			if known {
				ended.Store(true)
			}
		})
	}
	wg.Wait()
	if ended.Load() {
		return nil
	}
	return errors.Join(failed...)
}

// Repairs makes Drydock's own silences. It is an engine.Silencer.
type Repairs struct{ *Client }

// Silence silences the alerts with these labels from now on, and returns the silence's id.
func (r Repairs) Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (id string, err error) {
	return r.Client.Silence(ctx, NewSilence{Matchers: labels, StartsAt: time.Now(), EndsAt: until, Author: "drydock", Comment: comment})
}

// A matcher, an end, an author and a comment are required.
func (s NewSilence) postable() (*models.PostableSilence, error) {
	switch {
	case len(s.Matchers) == 0:
		return nil, errors.New("it has no matcher and would silence every alert")
	case s.StartsAt.IsZero() || !s.EndsAt.After(s.StartsAt):
		return nil, errors.New("it must begin, and end after that")
	case s.Author == "" || s.Comment == "":
		return nil, errors.New("it needs an author and a comment")
	}
	var matchers models.Matchers
	for _, name := range slices.Sorted(maps.Keys(s.Matchers)) {
		value := s.Matchers[name]
		if name == "" || value == "" {
			return nil, fmt.Errorf("its matcher %.64q=%.64q would match alerts that have no such label", name, value)
		}
		equal, regex := true, false
		matchers = append(matchers, &models.Matcher{Name: &name, Value: &value, IsEqual: &equal, IsRegex: &regex})
	}
	start, end := strfmt.DateTime(s.StartsAt.UTC()), strfmt.DateTime(s.EndsAt.UTC())
	return &models.PostableSilence{Silence: models.Silence{
		Matchers: matchers, StartsAt: &start, EndsAt: &end, CreatedBy: &s.Author, Comment: &s.Comment,
	}}, nil
}

// postSilence never repeats its request: net/http does not repeat a POST after its first byte.
func (r *replica) postSilence(ctx context.Context, s *models.PostableSilence) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	ok, err := r.api(object{}).Silence.PostSilences(
		silence.NewPostSilencesParamsWithTimeout(r.timeout).
			WithContext(traced).
			WithHTTPClient(r.client).
			WithSilence(s))
	var status *replicas.StatusError
	switch {
	case err == nil && ok.Payload != nil && strfmt.IsUUID(ok.Payload.SilenceID):
		return ok.Payload.SilenceID, nil
	case err == nil:
		return "", fmt.Errorf("the answer has no id of a silence; %w", ErrSilenceMayExist)
	case !connected.Load() || errors.As(err, &status) && status.Code >= 300 && status.Code < 500:
		return "", r.at.Explain(ctx, err)
	default:
		return "", fmt.Errorf("%w; %w", r.at.Explain(ctx, err), ErrSilenceMayExist)
	}
}

// known is false if the replica does not know the silence.
func (r *replica) deleteSilence(ctx context.Context, id string) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_, err = r.api(object{}).Silence.DeleteSilence(
		silence.NewDeleteSilenceParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client).
			WithSilenceID(strfmt.UUID(id)))
	var status *replicas.StatusError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &status) && status.Code == http.StatusNotFound:
		return false, nil
	default:
		return false, r.at.Explain(ctx, err)
	}
}
