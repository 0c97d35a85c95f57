package engine

import (
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/routing"
)

// elsewhere are the active alerts that a policy would take, and that no Alertmanager routes to Drydock's receiver. Nothing is
// done for them: whoever can post into Alertmanager's own API can make such an alert. But somebody may have meant them to
// arrive, so people are told of one.
type elsewhere struct {
	first string
	// says is the sentence about the first by fingerprint, so that it is always the same one.
	says string
}

func (e *elsewhere) add(w *alerts.Snapshot, fingerprint string, a alerts.Alert, route routing.Route, c *remediations.Config) {
	for _, r := range w.Replicas {
		if other, ok := r.Alerts[fingerprint]; ok && r.Err == nil && other.RoutedHere(c) {
			return // the replicas read their configurations at different times
		}
	}
	if e.first != "" && e.first <= fingerprint {
		return
	}
	e.first = fingerprint
	e.says = fmt.Sprintf("the alert %.80q is active, but it is not routed to receiver %q (alertmanager.receiver), so policy %s does nothing for it; if it should, correct Alertmanager's route or alertmanager.receiver", a.Labels["alertname"], c.Receiver, route.Policy.Name)
}
