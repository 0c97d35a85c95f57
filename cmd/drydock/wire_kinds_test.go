package main

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	kilo "drydock.dev/drydock/remediations/providers/kilo/settings"
)

// TestAMoveOfALeaderHasItsTime: Nodes are listed for 30 s at most, leases for 10, and a key is
// written for 10. With Prometheus' default that makes a minute. A call that takes longer counts as
// perhaps done.
func TestAMoveOfALeaderHasItsTime(t *testing.T) {
	cfg := &config.Config{Core: &remediations.Config{}}
	callTimeout := func(others time.Duration) time.Duration {
		o := engine.Options{CallTimeout: others}
		carrier, err := joinMesh(&joined{program: &program{cfg: cfg, clients: fake.NewClientset()}}, &o)
		require.NoError(t, err)
		require.Equal(t, len(cfg.Providers) > 0, carrier != nil)
		return o.CallTimeout
	}
	require.Equal(t, 15*time.Second, callTimeout(15*time.Second), "without a mesh it is the other providers'")
	for timeout, want := range map[time.Duration]time.Duration{time.Second: time.Minute, 10 * time.Second: time.Minute, 30 * time.Second: 100 * time.Second} {
		cfg.Providers = map[string]section.Provider{"kilo": &kilo.Kilo{Timeout: timeout, Prometheus: []*url.URL{{Scheme: "http", Host: "prometheus:9090"}}}}
		require.Equal(t, want, callTimeout(15*time.Second), timeout)
		require.Equal(t, 2*time.Minute, callTimeout(2*time.Minute))
	}
}

// TestEachKindOfAConfigurationIsJoined: otherwise no part would take its alerts. API servers are
// repaired outside the manager.
func TestEachKindOfAConfigurationIsJoined(t *testing.T) {
	joined := []remediations.Kind{remediations.KindAPIServer}
	for _, k := range kinds {
		joined = append(joined, k.of)
	}
	c, _, err := config.Load(write(t, "config.yaml", sound), config.Options{SkipFiles: true})
	require.NoError(t, err)
	var known []remediations.Kind
	for _, k := range c.Core.Kinds {
		known = append(known, k.Kind)
	}
	require.ElementsMatch(t, known, joined)
}
