package alertmanager

import (
	"context"
	"errors"
	"sync"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/silence"
	"github.com/prometheus/alertmanager/api/v2/models"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/alerts"
)

// Only people need the details, so a silence that cannot be read is left out without an error: its
// id already shows that it silences the alert.
func (r *replica) getSilences(ctx context.Context, ids []string) map[string]alerts.Silence {
	var asked []string
	for _, id := range ids {
		// All of Alertmanager's ids are UUIDs. Any other text must not get into the path of a URL.
		if strfmt.IsUUID(id) && len(asked) < maxSilences {
			asked = append(asked, id)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	found := make([]*alerts.Silence, len(asked))
	turns := make(chan struct{}, silencesAtOnce)
	var wg sync.WaitGroup
	for i, id := range asked {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if s, err := r.getSilence(ctx, id); err == nil {
				found[i] = s
			}
		})
	}
	wg.Wait()
	silences := map[string]alerts.Silence{}
	for i, s := range found {
		if s != nil {
			silences[asked[i]] = *s
		}
	}
	return silences
}

func (r *replica) getSilence(ctx context.Context, id string) (*alerts.Silence, error) {
	ok, err := r.api(object{}).Silence.GetSilence(
		silence.NewGetSilenceParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client).
			WithSilenceID(strfmt.UUID(id)))
	if err != nil {
		return nil, err
	}
	return newSilence(ok.Payload, id)
}

// newSilence refuses a silence that was not requested. It cuts people's texts to maxWords.
func newSilence(m *models.GettableSilence, id string) (*alerts.Silence, error) {
	if m == nil || m.ID == nil || *m.ID != id || m.CreatedBy == nil || m.Comment == nil || m.StartsAt == nil || m.EndsAt == nil {
		return nil, errors.New("the answer is not the requested silence")
	}
	return &alerts.Silence{Author: clip(*m.CreatedBy), Comment: clip(*m.Comment), EndsAt: timeOf(m.EndsAt)}, nil
}

func clip(s string) string { return text.Line(s, maxWords) }
