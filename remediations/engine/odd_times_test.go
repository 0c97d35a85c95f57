package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// TestAnAlertWithATimeThatJSONCannotHoldIsAdopted: it must not end the process, and then the
// process of each next leader. Any client that posts to Alertmanager chooses startsAt.
func TestAnAlertWithATimeThatJSONCannotHoldIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := settled(t, 4, 0)
		w := e.Fleet.(*still) //nolint:forcetypeassert // settled makes it
		for i, startsAt := range []string{"0000-01-01T00:00:00+14:00", "2026-11-20T20:55:00Z", "9999-12-31T23:59:59-14:00"} {
			at, err := time.Parse(time.RFC3339, startsAt)
			require.NoError(t, err)
			about := map[string]string{"alertname": "NodeNotReady", "node": w.nodes[i].Name, "remediation": "node-not-ready"}
			w.words[0].Alerts[remediations.Fingerprint(about)] = alerts.Alert{Labels: about, StartsAt: at, Active: true, Receivers: []string{e.Config.Receiver}}
		}
		e.word = &alerts.Snapshot{AskedAt: time.Now(), Replicas: w.words}
		require.NotPanics(t, func() { e.adopt(ctx) })
		for i, want := range []string{"0001-01-01T00:00:00Z", "2026-11-20T20:55:00Z", "9999-12-31T23:59:59Z"} {
			on := remediations.AlertsOn(w.nodes[i].Annotations)
			require.Len(t, on, 1, want)
			require.Equal(t, want, on[0].StartsAt.Format(time.RFC3339))
		}
	})
}
