package routing_test

import (
	"testing"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/testing/scene"
)

func matchers(t testing.TB, text ...string) labels.Matchers {
	t.Helper()
	var ms labels.Matchers
	for _, s := range text {
		m, err := labels.ParseMatcher(s)
		require.NoError(t, err)
		ms = append(ms, m)
	}
	return ms
}

func TestRoute(t *testing.T) {
	gpu, err := k8slabels.Parse("gpu")
	require.NoError(t, err)
	c := &Config{
		ClusterLabel: "cluster", ClusterValue: "prod",
		Policies: []*Policy{
			{Name: "off", Mode: ModeOff, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`)},
			{Name: "gpu", Mode: ModeEnforce, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`), NodeSelector: gpu},
			{Name: "urgent", Mode: ModeObserve, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`, `severity="page"`)},
			{Name: "any", Mode: ModeEnforce, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`)},
			{Name: "by-instance", Mode: ModeEnforce, Labels: []string{"instance"}, Match: matchers(t, `remediation="disk"`)},
		},
	}
	gpuNode, plain := scene.Bare("gpu1"), scene.Bare("n1")
	gpuNode.Labels["gpu"] = "8"
	find := func(name string) *corev1.Node {
		return map[string]*corev1.Node{"gpu1": gpuNode, "n1": plain}[name]
	}
	alert := func(kv ...string) map[string]string {
		m := map[string]string{"alertname": "A", "remediation": "node-not-ready", "node": "n1", "cluster": "prod"}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for name, tc := range map[string]struct {
		alert  map[string]string
		policy string
		why    Misroute
	}{
		"the first that matches and is not off":    {alert(), "any", MisrouteNone},
		"the nodeSelector picks its nodes":         {alert("node", "gpu1"), "gpu", MisrouteNone},
		"all matchers of a policy must match":      {alert("severity", "page"), "urgent", MisrouteNone},
		"the first wins, though the next matches":  {alert("node", "gpu1", "severity", "page"), "gpu", MisrouteNone},
		"no policy wants it":                       {alert("remediation", "nothing"), "", MisrouteNoPolicy},
		"another cluster's":                        {alert("cluster", "stage"), "", MisrouteOtherCluster},
		"another cluster's goes before all else":   {alert("cluster", "stage", "remediation", "x"), "", MisrouteOtherCluster},
		"without the cluster's label":              {alert("cluster", ""), "", MisrouteOtherCluster},
		"no target label":                          {alert("node", ""), "", MisrouteNoTarget},
		"a name that is none":                      {alert("node", "n1; reboot"), "", MisrouteNoTarget},
		"a path":                                   {alert("node", "../n1"), "", MisrouteNoTarget},
		"capitals are no Node's":                   {alert("node", "N1"), "", MisrouteNoTarget},
		"a port behind it: this policy names none": {alert("remediation", "disk", "instance", "n1:9100"), "", MisrouteNoTarget},
		"a name that nobody bears":                 {alert("node", "n2"), "", MisrouteUnknownNode},
		"the end of a repair, which is no fault":   {alert("alertname", "DrydockRepairEnded"), "", MisrouteNoPolicy},
		"another target label":                     {alert("remediation", "disk", "instance", "n1"), "by-instance", MisrouteNone},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := routing.Of(c, tc.alert, find)
			require.Equal(t, tc.why, why)
			if tc.policy == "" {
				require.Equal(t, routing.Route{}, got)
				return
			}
			require.Equal(t, tc.policy, got.Policy.Name)
			require.Equal(t, tc.alert[got.Policy.Labels[0]], got.Node)
		})
	}
	require.True(t, c.Wants(alert("node", "unknown")), "whichever node it names")
	require.False(t, c.Wants(alert("remediation", "nothing")))
	require.False(t, c.Wants(alert("cluster", "stage")), "an alert of another cluster takes no place among those of this one")
	require.True(t, c.Names(alert(), "n1"))
	require.False(t, c.Names(alert("cluster", "stage"), "n1"), "a node of that name in another cluster")
	c.Policies = c.Policies[:1]
	require.False(t, c.Wants(alert()), "a policy that is off wants nothing")
	c.ClusterLabel = ""
	_, why := routing.Of(c, alert("cluster", "stage"), find)
	require.Equal(t, MisrouteNoPolicy, why, "without a cluster label there is no check")
}
