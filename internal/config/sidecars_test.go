package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations"
	sidecar "drydock.dev/drydock/remediations/providers/sidecar/settings"
)

// sidecarsOf is the one kind of sidecars that the configuration has.
func sidecarsOf(t *testing.T, c *Config) sidecar.Sidecars {
	t.Helper()
	all, ok := Of[sidecar.Sidecars](c)
	require.True(t, ok)
	require.Len(t, all, 1)
	return all
}

func TestSeisSidecarsNeedOnlyTheirName(t *testing.T) {
	c, warnings := mustLoad(t, base+"providers: {sidecars: [{name: sei}]}\n")
	require.NotContains(t, lines(warnings), "mark-ready")
	s := sidecarsOf(t, c)[0]
	require.True(t, s.Selector.Matches(k8slabels.Set{"sei.io/node": "a"}))
	require.False(t, s.Selector.Matches(k8slabels.Set{"app": "a"}))
	s.Selector = nil
	require.Equal(t, sidecar.Sidecar{
		Name: "sei", Namespaces: []string{}, Scheme: "http", Port: "api",
		HealthPath: "/v0/healthz", ReadyCode: 200, NotReadyCode: 503, HealthTimeout: 2 * time.Second,
		ApproveMethod: "POST", ApprovePath: "/v0/tasks", ApproveBody: `{"type":"mark-ready","id":"{id}"}`, ApproveCodes: []int{200, 201, 202}, ApproveTimeout: 10 * time.Second,
		Owner: "seinode", Via: "http",
	}, s)
	require.Equal(t, 10, c.Core.Limits.Sidecars)
	p := c.Core.Policy("sidecar-not-ready")
	require.Equal(t, remediations.KindSidecar, p.Kind)
	require.Equal(t, []string{"namespace", "pod"}, p.Labels)
	require.Equal(t, []remediations.Step{{Name: "mark-ready", Provider: "sei", Wait: time.Minute, Attempts: 3}}, p.Plan)
	require.Zero(t, p.ProofFor, "one answer of the sidecar's own is the proof")
	require.True(t, c.Core.Wants(map[string]string{"remediation": "sidecar-not-ready"}))
}

// Without a provider, Drydock does not watch pods, and gives no warning.
func TestSidecarsAreIgnoredUnlessConfigured(t *testing.T) {
	c, warnings := mustLoad(t, base)
	require.NotContains(t, lines(warnings), "sidecar")
	require.False(t, c.Core.Wants(map[string]string{"remediation": "sidecar-not-ready"}))

	c, warnings = mustLoad(t, base+`providers: {sidecars: [{name: gate, selector: {matchLabels: {app: gate}}, port: "8080", health: {path: /ready}, approve: {path: /open, body: '{}'}, tls: {serverName: gate}}]}
`)
	require.Contains(t, lines(warnings), `providers.sidecars has none of the name "sei"`, "the shipped policy asks for Sei's")
	require.False(t, c.Core.Wants(map[string]string{"remediation": "sidecar-not-ready"}))
	require.Equal(t, "gate", sidecarsOf(t, c)[0].TLS.ServerName)
	require.Empty(t, sidecarsOf(t, c)[0].Owner)
}

// TestATokenInClearTextIsWarnedOf: over http any host on the path reads the token. With the API
// server's own audience, that host may use it there.
func TestATokenInClearTextIsWarnedOf(t *testing.T) {
	for auth, want := range map[string]string{
		"auth: {serviceAccount: {name: a}}":                     "write the audiences that the pods' proxies accept into auth.serviceAccount.audiences",
		"auth: {serviceAccount: {name: a, audiences: [proxy]}}": "everyone who can read the token can approve sidecars with it",
		"scheme: https, auth: {serviceAccount: {name: a}}":      "",
		"auth: {}": "",
	} {
		_, warnings := mustLoad(t, base+"providers: {sidecars: [{name: sei, "+auth+"}]}\n")
		const says = "providers.sidecars[0]: the token is sent over unencrypted http"
		if want == "" {
			require.NotContains(t, lines(warnings), says, auth)
			continue
		}
		require.Contains(t, lines(warnings), says, auth)
		require.Contains(t, lines(warnings), want, auth)
	}
}
