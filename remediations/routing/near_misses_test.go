package routing_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestNearMisses: NearMisses says for each policy that almost takes an alert why it does not. The
// policy that routing.Of returns is not among them.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	gpu, err := k8slabels.Parse("gpu,pool in (a,b)")
	require.NoError(t, err)
	c := &Config{ClusterLabel: "cluster", ClusterValue: "prod", Policies: []*Policy{
		{Name: "off", Mode: ModeOff, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`)},
		{Name: "gpu", Mode: ModeEnforce, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`), NodeSelector: gpu},
		{Name: "urgent", Mode: ModeObserve, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`, `severity="page"`, `team=~"a|b"`)},
		{Name: "any", Mode: ModeEnforce, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`)},
		{Name: "late", Mode: ModeEnforce, Labels: []string{"node"}, Match: matchers(t, `remediation="node-not-ready"`)},
		{Name: "disk", Mode: ModeEnforce, Labels: []string{"instance"}, Match: matchers(t, `remediation="disk"`)},
	}}
	n1 := scene.Bare("n1")
	n1.Labels["gpu"] = "8"
	find := func(name string) *corev1.Node { return map[string]*corev1.Node{"n1": n1}[name] }
	labels := map[string]string{"remediation": "node-not-ready", "node": "n1", "cluster": "prod", "team": "c"}

	misses := routing.NearMisses(c, labels, find)
	require.Equal(t, []routing.NearMiss{
		{"off", []string{"the policy's mode is off"}},
		{"gpu", []string{"node n1 does not match nodeSelector pool in (a,b)"}},
		{"urgent", []string{`the alert has no label severity, and the policy needs severity="page"`, `label team is "c", and the policy needs team=~"a|b"`}},
		{"late", []string{"policy any takes the alert, because it comes first"}},
	}, misses, "disk shares no label with it")
	route, _ := routing.Of(c, labels, find)
	require.Equal(t, "any", route.Policy.Name)

	n1.Labels["pool"] = "a"
	for _, m := range routing.NearMisses(c, labels, find) {
		require.NotEqual(t, "gpu", m.Policy, "what kept it is gone")
	}
	route, _ = routing.Of(c, labels, find)
	require.Equal(t, "gpu", route.Policy.Name)

	labels["node"] = "n2"
	require.Contains(t, routing.NearMisses(c, labels, find), routing.NearMiss{"any", []string{`no Node has the name "n2"`}})
	delete(labels, "node")
	require.Contains(t, routing.NearMisses(c, labels, find)[3].Why[0], "label node names nothing to repair")
	labels["cluster"] = "test"
	require.Empty(t, routing.NearMisses(c, labels, find), "another cluster's alert is no policy's")
}
