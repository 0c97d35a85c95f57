package remediations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/scene"
)

// TestAlertCountsOnlyWhereItIsRoutedToDrydock: whoever can post into Alertmanager's own API, without credentials in most
// clusters, chooses an alert's labels, and with a wrong label its route. Such an alert starts nothing.
func TestAlertCountsOnlyWhereItIsRoutedToDrydock(t *testing.T) {
	c := &Config{Watchdog: true, Receiver: "monitoring/drydock/drydock"}
	to := func(receivers ...string) AlertWord {
		return AlertWord{Active: true, StartsAt: scene.Noon, Receivers: receivers}
	}
	silenced := AlertWord{SilencedBy: []string{"s1"}, Receivers: []string{"null"}}
	for name, test := range map[string]struct {
		replicas []ReplicaWord
		want     Reason
		says     string
	}{
		"routed here":                               {[]ReplicaWord{replica(to("monitoring/drydock/drydock"))}, "", ""},
		"routed here and elsewhere":                 {[]ReplicaWord{replica(to("pager", "monitoring/drydock/drydock"))}, "", ""},
		"routed here by one of two":                 {[]ReplicaWord{replica(to("null")), replica(to("monitoring/drydock/drydock"))}, "", ""},
		"routed elsewhere":                          {[]ReplicaWord{replica(to("null")), replica(to("pager"))}, AlertUnconfirmed, `not routed to receiver "monitoring/drydock/drydock"`},
		"routed to nobody":                          {[]ReplicaWord{replica(to())}, AlertUnconfirmed, `not routed to receiver "monitoring/drydock/drydock"`},
		"routed to one whose name only ends alike":  {[]ReplicaWord{replica(to("tenant/x/monitoring/drydock/drydock"))}, AlertUnconfirmed, `"tenant/x/monitoring/drydock/drydock"`},
		"routed to one of a name that is the end":   {[]ReplicaWord{replica(to("drydock"))}, AlertUnconfirmed, `"drydock"`},
		"a silence counts, whoever it is routed to": {[]ReplicaWord{replica(to("monitoring/drydock/drydock")), replica(silenced)}, Silenced, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{AskedAt: scene.Noon, Replicas: test.replicas}
			v := w.About(scene.FP, c, "")
			require.Equal(t, test.want, v.Reason, v.Message)
			require.Contains(t, v.Message, test.says)
			require.False(t, v.Gone, "it fires, wherever it goes: its end proves nothing")
		})
	}
}
