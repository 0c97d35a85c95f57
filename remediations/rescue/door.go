package rescue

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/routing"
)

// First passes received alerts about the API servers to the rescue, and all others to next. The
// rescue needs no API server to accept an alert.
func (r *Rescue) First(next intake.Recorder) intake.Recorder { return rescueFirst{r, next} }

type rescueFirst struct {
	rescue *Rescue
	next   intake.Recorder
}

// Record only stores the alert in memory. If the process stops, no alert is lost, because the
// rescue polls Alertmanager itself.
func (f rescueFirst) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (intake.Result, error) {
	r := f.rescue
	noNode := func(string) *corev1.Node { return nil }
	if route, why := routing.Of(r.Config, labels, noNode); why == remediations.MisrouteNone && route.Policy.Kind == remediations.KindAPIServer {
		r.Receive(r.Config.NewAlert(route.Policy, labels, status, startsAt, r.Clock.Now()))
		return intake.Accepted, nil
	}
	return f.next.Record(ctx, labels, status, startsAt)
}
