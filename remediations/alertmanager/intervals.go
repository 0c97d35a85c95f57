package alertmanager

import (
	"context"
	"errors"
	"strings"

	"github.com/prometheus/alertmanager/api/v2/client/general"
)

// getMutes requests the groups, unless the replica's configuration shows that no route has time
// intervals: the groups would then only repeat all alerts.
func (r *replica) getMutes(ctx context.Context, m *mutes) error {
	if yes, err := r.mayMute(ctx); err == nil && !yes {
		return nil
	}
	return r.getGroups(ctx, m)
}

// The API returns the configuration as Alertmanager itself writes it. It leaves out
// mute_time_intervals, active_time_intervals and time_intervals if they are empty.
func (r *replica) mayMute(ctx context.Context) (bool, error) {
	ok, err := r.api(object{}).General.GetStatus(
		general.NewGetStatusParamsWithTimeout(r.timeout).
			WithContext(ctx).
			WithHTTPClient(r.client))
	if err != nil {
		return false, err
	}
	if ok.Payload == nil || ok.Payload.Config == nil || ok.Payload.Config.Original == nil || !strings.Contains(*ok.Payload.Config.Original, "receivers:") {
		return false, errors.New("it has no configuration, so it is not Alertmanager's")
	}
	return strings.Contains(*ok.Payload.Config.Original, "time_intervals"), nil
}
