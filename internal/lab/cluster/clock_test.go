package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAShiftedClockKeepsTheFormOfEachTime(t *testing.T) {
	t.Parallel()
	require.JSONEq(t,
		`{"renewTime":"2026-11-30T00:20:00.123456Z","other":"2026-11-30T00:00:00Z","conditions":[{"lastHeartbeatTime":"2026-11-30T00:20:00Z","lastTransitionTime":null}]}`,
		string(shift([]byte(
			`{"renewTime":"2026-11-30T00:00:00.123456Z","other":"2026-11-30T00:00:00Z","conditions":[{"lastHeartbeatTime":"2026-11-30T00:00:00Z","lastTransitionTime":null}]}`,
		), 20*time.Minute)))
}
