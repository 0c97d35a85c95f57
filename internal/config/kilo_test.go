package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	kilo "drydock.dev/drydock/remediations/providers/kilo/settings"
)

const leaders = `policies:
- {name: leaders, match: ['a="b"'], target: {location: region}, approval: true, plan: [{step: promote-leader}]}
`

func TestKiloNeedsNoOtherKey(t *testing.T) {
	c, warnings := mustLoad(t, base+leaders+"providers: {kilo: {}}\n")
	require.NotContains(t, lines(warnings), "promote-leader")
	own := c.Providers["kilo"].(*kilo.Kilo)
	require.Len(t, own.Prometheus, 1)
	require.Equal(t, "http://prometheus-operated.monitoring:9090", own.Prometheus[0].String())
	require.Equal(t, "topology.kubernetes.io/region", own.TopologyLabel)
	require.Equal(t, 10*time.Second, own.Timeout)
	require.Equal(t, 7*time.Minute, own.MaxAge)
	require.False(t, own.AllowControlPlane)
	require.False(t, own.Pairs)
	require.True(t, own.HTTPConfig.FollowRedirects, "the default of prometheus/common")
	require.Equal(t, own.TopologyLabel, c.Core.TopologyLabel)
	require.Equal(t, remediations.LocationLimits{Concurrent: 1, PerLocation: 15 * time.Minute}, c.Core.Limits.Locations)
	require.True(t, c.Core.Provided["promote-leader"])
	require.True(t, c.Core.Wants(map[string]string{"a": "b"}))

	p := c.Core.Policy("leaders")
	require.Equal(t, remediations.KindLocation, p.Kind)
	require.Equal(t, []string{"region"}, p.Labels, "a label that happens to be called node names nothing here")
	require.True(t, p.Approval)
	require.False(t, p.CordonExhausted, "a degraded leader may be a good node")
	require.Equal(t, []remediations.Step{{Name: "promote-leader", Wait: 3 * time.Minute, Attempts: 2}}, p.Plan)
	require.Equal(t, "leaders of the mesh", c.Policies[0].Selector())
}

func TestKiloIsConfigured(t *testing.T) {
	c, _ := mustLoad(t, base+`providers:
  kilo:
    topologyLabel: example.com/site
    prometheus: ["https://prometheus-0/prefix/", "https://prometheus-1"]
    httpConfig: {authorization: {credentials_file: am/token}}
    timeout: 3s
    maxAge: 8m
    allowControlPlane: true
    pairs: true
limits: {leaders: {concurrent: 2, perLocation: 1h}}
`)
	own := c.Providers["kilo"].(*kilo.Kilo)
	require.Equal(t, "https://prometheus-0/prefix", own.Prometheus[0].String())
	require.Equal(t, "https://prometheus-1", own.Prometheus[1].String())
	require.Equal(t, "am/token", own.HTTPConfig.Authorization.CredentialsFile, "from where the configuration is")
	require.Equal(t, 3*time.Second, own.Timeout)
	require.Equal(t, 8*time.Minute, own.MaxAge)
	require.True(t, own.AllowControlPlane)
	require.True(t, own.Pairs)
	require.Equal(t, "example.com/site", c.Core.TopologyLabel)
	require.Equal(t, remediations.LocationLimits{Concurrent: 2, PerLocation: time.Hour}, c.Core.Limits.Locations)
}

// Without the provider, Drydock does not watch a mesh: a user's policy causes a warning, the
// shipped ones do not.
func TestLeadersAreIgnoredUnlessConfigured(t *testing.T) {
	c, warnings := mustLoad(t, base)
	require.NotContains(t, lines(warnings), "promote-leader")
	require.Nil(t, c.Providers["kilo"])
	require.Empty(t, c.Core.TopologyLabel)

	c, warnings = mustLoad(t, base+leaders)
	require.Contains(t, lines(warnings), "step promote-leader of policy leaders will be skipped: providers.kilo is not configured")
	require.False(t, c.Core.Wants(map[string]string{"a": "b"}))
}

func TestATargetHasOneKind(t *testing.T) {
	for target, want := range map[string]remediations.Policy{
		"":                                  {Labels: []string{"node"}},
		"target: {}, ":                      {Labels: []string{"node"}},
		"target: {node: instance}, ":        {Labels: []string{"instance"}},
		"target: {pod: p, namespace: ns}, ": {Kind: remediations.KindSidecar, Labels: []string{"ns", "p"}},
		"target: {location: region}, ":      {Kind: remediations.KindLocation, Labels: []string{"region"}},
	} {
		step := map[bool]string{true: "promote-leader", false: "reboot"}[want.Kind == remediations.KindLocation]
		if want.Kind == remediations.KindSidecar {
			step = "mark-ready"
		}
		c, _ := mustLoad(t, base+"policies: [{name: one, "+target+"match: ['a=\"b\"'], plan: [{step: "+step+"}]}]\n")
		got := c.Core.Policies[0]
		require.Equal(t, want, remediations.Policy{Kind: got.Kind, Labels: got.Labels}, target)
	}
}
