package remediations_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/scene"
)

// drawNode is a Node of the name with anything on it that a roster reads.
func drawNode(t *rapid.T, c *Config, name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.Labels, n.Annotations = name, map[string]string{}, map[string]string{}
	put := func(m map[string]string, key string, values ...string) {
		if v := rapid.SampledFrom(append(values, "")).Draw(t, key); v != "" {
			m[key] = v
		}
	}
	put(n.Labels, c.Limits.ZoneLabel, "a", "b", "c")
	put(n.Labels, c.Limits.PoolLabels[0], "small", "large")
	put(n.Labels, "node-role.kubernetes.io/control-plane", "true")
	put(n.Labels, GPUCountLabel, "8")
	put(n.Labels, PhaseLabel, string(Pending), string(Acting), string(Verifying), string(Exhausted))
	put(n.Annotations, NodeRepairKey, "{}")
	put(n.Annotations, BreakGlassKey, "why")
	put(n.Annotations, HistoryKey, "[]")
	n.CreationTimestamp.Time = scene.Noon.Add(-rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "age"))
	status := rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "ready")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	return n
}

// TestARosterKnowsWhatAFreshLookWouldSay: whatever Nodes come, change and go, in whatever order they are listed.
func TestARosterKnowsWhatAFreshLookWouldSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := scene.LimitsAlone()
		firing := func(name string) bool { return name == "n1" }
		ledger := &Ledger{Slots: []Slot{{Node: "n2", Zone: "a"}, {Node: "gone", Zone: "b"}}}
		roster, here := NewRoster(c), map[string]*corev1.Node{}
		for range rapid.IntRange(1, 8).Draw(t, "passes") {
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 4).Draw(t, "changed") {
				name := fmt.Sprintf("n%d", i)
				if delete(here, name); rapid.Bool().Draw(t, "there") {
					here[name] = drawNode(t, c, name)
				}
			}
			var nodes []*corev1.Node
			for _, n := range here {
				nodes = append(nodes, n)
			}
			roster.Read(nodes)
			want, got := NewFleet(c, nodes, ledger, firing, scene.Noon), roster.Fleet(ledger, firing, false, scene.Noon)
			want.WithoutRoster() // each has its own
			got.WithoutRoster()
			require.Equal(t, want, got)
			require.Len(t, roster.Members(), len(nodes))
			for i, m := range roster.Members() {
				require.Same(t, nodes[i], m.Node)
				require.Same(t, m, roster.Member(m.Node.Name))
				_, glass := m.Node.Annotations[BreakGlassKey]
				require.Equal(t, glass, m.Glass)
			}
			for i := range 10 {
				name := fmt.Sprintf("n%d", i)
				require.Same(t, here[name], roster.Node(name))
			}
		}
	})
}
