package real

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/alertmanager"
)

// TestAPostedAlertIsOneAlertAtEachReplica, even if it is posted several times. If one replica is
// down, the others have the alert.
func TestAPostedAlertIsOneAlertAtEachReplica(t *testing.T) {
	down := "http://127.0.0.1:9"
	w := newWorld(t)
	now := time.Now()
	post := func(id string) {
		require.NoError(t, newWorldAt(t, append([]string{down}, w.urls...)...).client.Post(t.Context(), []alertmanager.NewAlert{{
			Labels: map[string]string{"alertname": "DrydockRepairEnded", "repair": id, "node": "n1"}, StartsAt: now, EndsAt: now.Add(10 * time.Minute),
		}}))
	}
	post("aaaaaa")
	post("aaaaaa")
	post("bbbbbb") // the control
	for i := range w.urls {
		count := func(matchers ...string) int {
			return strings.Count(w.run(i, append([]string{"alert", "query", "--output=simple"}, matchers...)...), "DrydockRepairEnded")
		}
		require.Equal(t, 1, count("repair=aaaaaa"))
		require.Equal(t, 2, count("alertname=DrydockRepairEnded"))
	}
	require.ErrorContains(t, newWorldAt(t, down).client.Post(t.Context(), []alertmanager.NewAlert{{Labels: map[string]string{"alertname": "X"}}}), "posting to Alertmanager "+down)
}
