package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTimesOfNodeRulesAreDivided, and those of no other rule: what they wait, look back, and
// want of a node's age.
func TestTheTimesOfNodeRulesAreDivided(t *testing.T) {
	t.Parallel()
	custom, err := customRules()
	require.NoError(t, err)
	require.Contains(t, custom, "NodeNotReady")
	require.Contains(t, custom, "NodeDiskPressure")
	require.Contains(t, custom, "KubeProxyNotReady")
	require.NotContains(t, custom, "DrydockSourceDown")
	require.NotContains(t, custom, "NodesNotReady", "no policy takes it")
	for alert, values := range custom {
		expr, _ := values.(map[string]any)["expr"].(string)
		require.NotRegexp(t, `\[[0-9]+m[]:]|offset [0-9]+m\b|600`, expr, alert)
	}
	rule, _ := custom["NodeNotReady"].(map[string]any)
	require.Equal(t, "12500ms", rule["for"])
	require.Equal(t, "5000ms", rule["keepFiringFor"])
	require.Contains(t, rule["expr"], "[15000ms]")
	require.Contains(t, rule["expr"], "< 50)")
}

// TestThePoliciesAreTheShippedOnes, each whole, with shorter times; what replaces a machine reboots
// it, or goes where the plan reboots anyway.
func TestThePoliciesAreTheShippedOnes(t *testing.T) {
	t.Parallel()
	short, err := policies()
	require.NoError(t, err)
	plans := map[string]string{}
	for _, p := range short {
		var steps []string
		for _, s := range p.Plan {
			steps = append(steps, fmt.Sprint(s["step"], " ", s["wait"], s["timeout"]))
		}
		plans[p.Name] = strings.Join(steps, ", ")
		require.Equal(t, "2500ms", p.ProofFor, p.Name)
	}
	require.Equal(t, "restart-kubelet 60000ms<nil>, reboot 200000ms<nil>", plans["node-not-ready"])
	require.Equal(t, "drain <nil>150000ms, reboot 400000ms<nil>", plans["node-disk-pressure"])
	require.Equal(t, "restart-kube-proxy 60000ms<nil>, reboot 200000ms<nil>", plans["kube-proxy-not-ready"])
	require.NotContains(t, plans, "node-gpu-fault")
	require.NotContains(t, plans, "apiserver-down")
}
