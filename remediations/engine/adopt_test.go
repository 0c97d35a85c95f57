package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
)

// TestAnAlertThatIsQueuedIsNotAdopted: the receiver beside the engine writes it, and in a storm twice as many writes would be too many.
func TestAnAlertThatIsQueuedIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := settled(t, 4, 0)
		w := e.Fleet.(*still) //nolint:forcetypeassert // settled makes it
		keys := map[string]string{}
		for _, name := range []string{"node-0", "node-1"} {
			about := map[string]string{"alertname": "NodeNotReady", "node": name, "remediation": "node-not-ready", "severity": "critical"}
			fp := remediations.Fingerprint(about)
			w.words[0].Alerts[fp] = alerts.Alert{Labels: about, StartsAt: time.Now(), Active: true, Receivers: []string{e.Config.Receiver}}
			keys[name] = remediations.AlertPrefix + fp
		}
		e.word = &alerts.Snapshot{AskedAt: time.Now(), Replicas: w.words}
		e.Queued = func(n *corev1.Node, key string) bool { return n.Name == "node-0" && key == keys["node-0"] }
		on := func(i int) []remediations.Alert { return remediations.AlertsOn(w.nodes[i].Annotations) }
		e.adopt(ctx)
		require.Empty(t, on(0))
		require.Len(t, on(1), 1, "the control: nobody else is about to write it")
		e.Queued = nil
		e.adopt(ctx)
		require.Len(t, on(0), 1, "and it is adopted as soon as it waits no more")
	})
}

// TestAPollThatWasAskedBeforeTheEndAdoptsNothing: the end of an alert is posted while a slow Alertmanager answers a poll. The alert
// stays resolved, unless it has begun again, or a later poll still shows it.
func TestAPollThatWasAskedBeforeTheEndAdoptsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		asked, begins, received time.Duration // after the alert's end
		want                    string
	}{
		"asked before the end":                     {asked: -3 * time.Second, want: remediations.StatusResolved},
		"asked after the end":                      {asked: 3 * time.Second, want: remediations.StatusFiring},
		"asked before the end, of another episode": {asked: -3 * time.Second, begins: -10 * time.Second, want: remediations.StatusFiring},
		"an end noted by a clock that is wrong":    {asked: -3 * time.Second, received: time.Hour, want: remediations.StatusFiring},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, ctx := settled(t, 1, 0)
				w := e.Fleet.(*still) //nolint:forcetypeassert // settled makes it
				about := map[string]string{"alertname": "NodeNotReady", "node": "node-0", "remediation": "node-not-ready", "severity": "critical"}
				began := time.Now().Add(-time.Hour)
				ended := e.Config.NewAlert(e.Config.Policy("node-not-ready"), about, remediations.StatusResolved, began, time.Now().Add(c.received))
				w.nodes[0].Annotations = map[string]string{ended.Key(): ended.Encode()}
				if c.begins != 0 {
					began = time.Now().Add(c.begins)
				}
				w.words[0].Alerts[ended.Fingerprint] = alerts.Alert{Labels: about, StartsAt: began, Active: true, Receivers: []string{e.Config.Receiver}}
				e.word = &alerts.Snapshot{AskedAt: time.Now().Add(c.asked), Replicas: w.words}
				e.adopt(ctx)
				on := remediations.AlertsOn(w.nodes[0].Annotations)
				require.Len(t, on, 1)
				require.Equal(t, c.want, on[0].Status)
			})
		})
	}
}
