package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/intake"
)

// TestAnAlertThatIsQueuedIsNotAdopted: the receiver in the same process writes the alert. In a
// storm, twice as many writes would be too many.
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
		adopt := e.Adopt
		e.Adopt = intake.Intake{Writer: waitingFor{w.annotate, "node-0", keys["node-0"]}, Now: time.Now}.Adopt
		on := func(i int) []remediations.Alert { return remediations.AlertsOn(w.nodes[i].Annotations) }
		e.adopt(ctx)
		require.Empty(t, on(0))
		require.Len(t, on(1), 1, "the control: nobody else is about to write it")
		e.Adopt = adopt
		e.adopt(ctx)
		require.Len(t, on(0), 1, "and it is adopted as soon as it waits no more")
	})
}

// waitingFor is a writer at which the alert of that key waits for the node of that name.
type waitingFor struct {
	intake.Direct
	node, key string
}

func (w waitingFor) Waiting(n *corev1.Node, key string) (value *string, ok bool) {
	return nil, n.Name == w.node && key == w.key
}

// TestPollFromBeforeTheAlertsEndAdoptsNothing: the end of an alert is posted while a slow
// Alertmanager answers a poll. The alert stays resolved until a later poll still shows it, unless
// the alert has begun again.
func TestPollFromBeforeTheAlertsEndAdoptsNothing(t *testing.T) {
	for name, begunAgain := range map[string]bool{"the same alert": false, "it has begun again, the control": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, ctx := settled(t, 1, 0)
				w := e.Fleet.(*still) //nolint:forcetypeassert // settled makes it
				about := map[string]string{"alertname": "NodeNotReady", "node": "node-0", "remediation": "node-not-ready", "severity": "critical"}
				began := time.Now().Add(-time.Hour)
				p := e.Config.Policy("node-not-ready")
				ended := e.Config.NewAlert(p, about, remediations.StatusResolved, began, time.Now()).SeenSince(e.Config.NewAlert(p, about, remediations.StatusFiring, began, began))
				w.nodes[0].Annotations = map[string]string{ended.Key(): ended.Encode()}
				if begunAgain {
					began = began.Add(time.Minute)
				}
				w.words[0].Alerts[ended.Fingerprint] = alerts.Alert{Labels: about, StartsAt: began, Active: true, Receivers: []string{e.Config.Receiver}}
				status := func() string {
					on := remediations.AlertsOn(w.nodes[0].Annotations)
					require.Len(t, on, 1)
					return on[0].Status
				}
				poll := func(ago time.Duration) {
					e.word = &alerts.Snapshot{AskedAt: time.Now().Add(-ago), Replicas: w.words}
					e.lookAgain = false
					e.adopt(ctx)
				}
				poll(time.Second)
				if begunAgain {
					require.Equal(t, remediations.StatusFiring, status())
					return
				}
				require.Equal(t, remediations.StatusResolved, status())
				require.True(t, e.lookAgain, "it asks again at once")
				time.Sleep(10 * time.Second)
				poll(11 * time.Second)
				require.Equal(t, remediations.StatusResolved, status(), "this one was asked before it, too")
				poll(0)
				require.Equal(t, remediations.StatusFiring, status(), "Alertmanager has it still")
			})
		})
	}
}
