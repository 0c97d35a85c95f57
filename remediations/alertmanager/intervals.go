package alertmanager

import (
	"context"
	"errors"
	"strings"

	"github.com/prometheus/alertmanager/api/v2/client/general"
)

// getMutes requests the groups, unless the replica's configuration shows that no route has time
// intervals. Then nothing can be muted, and the groups would only repeat all alerts. If the
// configuration cannot be read, getMutes requests the groups.
func (r *replica) getMutes(ctx context.Context, m *mutes) error {
	if yes, err := r.mayMute(ctx); err == nil && !yes {
		return nil
	}
	return r.getGroups(ctx, m)
}

// mayMute reports whether time intervals can mute a route in the replica's configuration. The API
// returns the configuration as Alertmanager itself writes it: the routes' mute_time_intervals and
// active_time_intervals, and the definitions in time_intervals. Alertmanager leaves out each of the
// three if it is empty.
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
