package engine

import (
	"fmt"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/routing"
)

// elsewhere are active alerts that match a policy and that no Alertmanager routes to Drydock.
// Drydock does nothing for them, because anyone who can post to Alertmanager's API can create one.
// One of them is reported.
type elsewhere struct {
	first string
	// says is about the alert with the lowest fingerprint, so that each pass reports the same
	// alert.
	says string
}

func (e *elsewhere) add(w *alerts.Snapshot, fingerprint string, a alerts.Alert, route routing.Route, c *remediations.Config) {
	for _, r := range w.Replicas {
		if other, ok := r.Alerts[fingerprint]; ok && r.Err == nil && other.RoutedHere(c) {
			return // one replica routes it here, and the others may not have read the new configuration yet
		}
	}
	if e.first != "" && e.first <= fingerprint {
		return
	}
	e.first = fingerprint
	e.says = fmt.Sprintf("the alert %.80q is active, but it is not routed to receiver %q (alertmanager.receiver), so policy %s does nothing for it; if it should, correct Alertmanager's route or alertmanager.receiver", a.Labels["alertname"], c.Receiver, route.Policy.Name)
}
