package alertmanager

import (
	"context"
	"errors"
	"strings"

	"github.com/prometheus/alertmanager/api/v2/client/general"
)

// getMutes asks for the groups, unless the replica's configuration says that no route has times: then nothing can be muted,
// and the groups would be all its alerts over again. Whatever is wrong with the configuration, the groups are asked for.
func (r *replica) getMutes(ctx context.Context, m *mutes) error {
	if yes, err := r.mayMute(ctx); err == nil && !yes {
		return nil
	}
	return r.getGroups(ctx, m)
}

// mayMute says whether the replica's configuration has times that mute a route, or confine it. The answer has the
// configuration as Alertmanager itself writes it down: mute_time_intervals and active_time_intervals are a route's,
// time_intervals the definitions, and all three are left out where they are empty.
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
