package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// TestAfterAStoreThatWentBackNothingIsDisrupted until the time that the ledger has.
func TestAfterAStoreThatWentBackNothingIsDisrupted(t *testing.T) {
	for left, held := range map[time.Duration]bool{time.Minute: true, 1: true, 0: false, -time.Minute: false} {
		c := aCandidate()
		c.Ledger.Status.WentBack = &ledger.WentBack{Why: "an older state", Until: callTime.Add(left)}
		require.Equal(t, held, c.isHeldBy(ReasonStoreWentBack), left)
	}
	require.False(t, aCandidate().isHeldBy(ReasonStoreWentBack))
}

// TestWhenAnAlertHasEnded: before the first step, no Alertmanager may have the alert, and
// Alertmanager must have posted its end. After the first step, the post is not needed.
func TestWhenAnAlertHasEnded(t *testing.T) {
	firing, resolved := &Alert{Status: StatusFiring}, &Alert{Status: StatusResolved}
	for name, c := range map[string]struct {
		gone  bool
		alert *Alert
		acted bool
		want  bool
	}{
		"gone, and posted as resolved":     {true, resolved, false, true},
		"gone without a post":              {true, firing, false, false},
		"gone without a post after a step": {true, firing, true, true},
		"gone, also from the Node":         {true, nil, false, true},
		"posted, and there again":          {false, resolved, false, false},
		"there after a step":               {false, firing, true, false},
	} {
		asked := aCandidate()
		asked.Verdict.Gone, asked.Alert = c.gone, c.alert
		if c.acted {
			asked.Repair = "r1"
		}
		require.Equal(t, c.want, asked.Resolved(), name)
	}
}

// TestARequestWaitsForNoAlert: an alert must fire for the policy's time, and a request is carried
// out at once.
func TestARequestWaitsForNoAlert(t *testing.T) {
	c := aCandidate()
	c.Policy.For, c.Verdict.StartsAt, c.Alert = time.Hour, callTime.Add(-time.Minute), nil
	require.NotNil(t, alertTooYoung(c))
	c.Request = "remediation/reboot"
	require.Nil(t, alertTooYoung(c))
}
