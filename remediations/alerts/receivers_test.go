package alerts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAlertCountsOnlyWhereItIsRoutedToDrydock: in most clusters any client can post to
// Alertmanager's API without credentials, and chooses the alert's labels. The labels also choose
// the route. An alert that is not routed to Drydock starts nothing.
func TestAlertCountsOnlyWhereItIsRoutedToDrydock(t *testing.T) {
	c := &remediations.Config{Watchdog: true, Receiver: "monitoring/drydock/drydock"}
	to := func(receivers ...string) alerts.Alert {
		return alerts.Alert{Active: true, StartsAt: scene.Noon, Receivers: receivers}
	}
	silenced := alerts.Alert{SilencedBy: []string{"s1"}, Receivers: []string{"null"}}
	for name, test := range map[string]struct {
		replicas []alerts.Replica
		want     remediations.Reason
		says     string
	}{
		"routed here":                               {[]alerts.Replica{replica(to("monitoring/drydock/drydock"))}, "", ""},
		"routed here and elsewhere":                 {[]alerts.Replica{replica(to("pager", "monitoring/drydock/drydock"))}, "", ""},
		"routed here by one of two":                 {[]alerts.Replica{replica(to("null")), replica(to("monitoring/drydock/drydock"))}, "", ""},
		"routed elsewhere":                          {[]alerts.Replica{replica(to("null")), replica(to("pager"))}, remediations.ReasonAlertUnconfirmed, `not routed to receiver "monitoring/drydock/drydock"`},
		"routed to nobody":                          {[]alerts.Replica{replica(to())}, remediations.ReasonAlertUnconfirmed, `not routed to receiver "monitoring/drydock/drydock"`},
		"routed to one whose name only ends alike":  {[]alerts.Replica{replica(to("tenant/x/monitoring/drydock/drydock"))}, remediations.ReasonAlertUnconfirmed, `"tenant/x/monitoring/drydock/drydock"`},
		"routed to one of a name that is the end":   {[]alerts.Replica{replica(to("drydock"))}, remediations.ReasonAlertUnconfirmed, `"drydock"`},
		"a silence counts, whoever it is routed to": {[]alerts.Replica{replica(to("monitoring/drydock/drydock")), replica(silenced)}, remediations.ReasonSilenced, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := alerts.Snapshot{AskedAt: scene.Noon, Replicas: test.replicas}
			v := w.VerdictFor(scene.FP, c, "")
			require.Equal(t, test.want, v.Reason, v.Message)
			require.Contains(t, v.Message, test.says)
			require.False(t, v.Gone, "it fires, wherever it goes: its end proves nothing")
		})
	}
}
