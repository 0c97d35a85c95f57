package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/alertmanager/api/v2/models"
)

// NewAlert is an alert to post.
type NewAlert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
}

// Post posts the alerts to every replica, because replicas do not send each other alerts. It
// succeeds when one has accepted them, and may be repeated.
func (c *Client) Post(ctx context.Context, all []NewAlert) error {
	var posted models.PostableAlerts
	for _, a := range all {
		posted = append(posted, &models.PostableAlert{
			Alert: models.Alert{Labels: a.Labels}, Annotations: a.Annotations,
			StartsAt: strfmt.DateTime(a.StartsAt.UTC()), EndsAt: strfmt.DateTime(a.EndsAt.UTC()),
		})
	}
	seats := c.seats(ctx)
	failed := make([]error, len(seats))
	var taken atomic.Bool
	var wg sync.WaitGroup
	for i, seat := range seats {
		if seat.replica == nil {
			failed[i] = seat.failed.Err
			continue
		}
		wg.Go(func() {
			if err := seat.replica.postAlerts(ctx, posted); err != nil {
				failed[i] = fmt.Errorf("posting to Alertmanager %s: %w", seat.replica.url, err)
				return
			}
			taken.Store(true)
		})
	}
	wg.Wait()
	if taken.Load() {
		return nil
	}
	return errors.Join(failed...)
}

func (r *replica) postAlerts(ctx context.Context, all models.PostableAlerts) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_, err := r.api(object{}).Alert.PostAlerts(
		alert.NewPostAlertsParamsWithTimeout(r.timeout).WithContext(ctx).WithHTTPClient(r.client).WithAlerts(all))
	if err != nil {
		return r.at.Explain(ctx, err)
	}
	return nil
}
