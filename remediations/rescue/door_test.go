package rescue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
)

// written are the alerts that were written on Nodes.
type written []map[string]string

func (w *written) Record(_ context.Context, labels map[string]string, _ string, _ time.Time) (intake.Result, error) {
	*w = append(*w, labels)
	return intake.Unchanged, nil
}

// TestTheRescueTakesItsAlertsFirst: an alert about the API servers goes only to the rescue, whether
// or not an API server answers. All other alerts go to the next recorder.
func TestTheRescueTakesItsAlertsFirst(t *testing.T) {
	c := rescueConfig()
	r := &Rescue{Options: Options{Config: c, Clock: clock.RealClock{}}, posted: map[string]remediations.Alert{}, notice: make(chan struct{}, 1)}
	var rest written
	door := r.First(&rest)
	own := map[string]string{c.Policies[0].Match[0].Name: c.Policies[0].Match[0].Value, "alertname": "A"}
	result, err := door.Record(t.Context(), own, remediations.StatusFiring, time.Now())
	require.NoError(t, err)
	require.Equal(t, intake.Accepted, result)
	require.Len(t, r.posted, 1)
	require.Empty(t, rest)

	result, err = door.Record(t.Context(), map[string]string{"alertname": "A", "node": "n1"}, remediations.StatusFiring, time.Now())
	require.NoError(t, err)
	require.Equal(t, intake.Unchanged, result)
	require.Len(t, rest, 1)
	require.Len(t, r.posted, 1)
}
