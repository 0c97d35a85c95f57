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
