package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/config/section"
	kilo "drydock.dev/drydock/remediations/kilo/settings"
)

// TestAMoveOfALeaderHasItsTime: Nodes are listed for 30 s at most, leases for 10, and a key is written for 10. With Prometheus
// as it is by default that is the minute after which a call counts as perhaps done.
func TestAMoveOfALeaderHasItsTime(t *testing.T) {
	cfg := &config.Config{}
	require.Equal(t, 15*time.Second, callTimeoutOf(cfg, 15*time.Second), "without a mesh it is the other providers'")
	for timeout, want := range map[time.Duration]time.Duration{time.Second: time.Minute, 10 * time.Second: time.Minute, 30 * time.Second: 100 * time.Second} {
		cfg.Providers = map[string]section.Provider{"kilo": &kilo.Kilo{Timeout: timeout}}
		require.Equal(t, want, callTimeoutOf(cfg, 15*time.Second), timeout)
		require.Equal(t, 2*time.Minute, callTimeoutOf(cfg, 2*time.Minute))
	}
}
