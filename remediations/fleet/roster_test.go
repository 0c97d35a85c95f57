package fleet_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/testing/scene"
)

// drawNode returns a Node with the name and arbitrary content that a roster reads.
func drawNode(t *rapid.T, c *Config, name string, now time.Time) *corev1.Node {
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
	put(n.Labels, signs.GPUCountLabel, "8")
	put(n.Labels, PhaseLabel, string(PhasePending), string(PhaseActing), string(PhaseVerifying), string(PhaseExhausted))
	put(n.Annotations, NodeRepairKey, "{}")
	put(n.Annotations, BreakGlassKey, "why")
	put(n.Annotations, HistoryKey, "[]")
	n.CreationTimestamp.Time = now.Add(-rapid.SampledFrom([]time.Duration{-time.Minute, time.Second, 9 * time.Minute, 10 * time.Minute, time.Hour}).Draw(t, "age"))
	status := rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "ready")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	return n
}

// TestARosterKnowsWhatACountFromNothingWouldSay: after any changes of Nodes, alerts and time, the
// roster has the same counts as a new count. It may receive only the changes, or all Nodes.
func TestARosterKnowsWhatACountFromNothingWouldSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := scene.LimitsAlone()
		c.Limits.StartupGrace = 10 * time.Minute
		c.Windows = []Window{{From: WallTime{Hour: 12, Minute: 30}, To: WallTime{Hour: 13}, Location: time.UTC}}
		ledger := &ledger.Ledger{Slots: []ledger.Slot{{Node: "n2", Zone: "a"}, {Node: "gone", Zone: "b"}}}
		roster, here, firing, now := fleet.NewRoster(c), map[string]*corev1.Node{}, map[string]time.Time{}, scene.Noon
		for range rapid.IntRange(1, 12).Draw(t, "passes") {
			var changed []*corev1.Node
			var gone []string
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 4, rapid.ID).Draw(t, "changed") {
				name := fmt.Sprintf("n%d", i)
				if rapid.Bool().Draw(t, "there") {
					here[name] = drawNode(t, c, name, now)
					changed = append(changed, here[name])
				} else {
					delete(here, name)
					gone = append(gone, name)
				}
			}
			nodes := slices.SortedFunc(maps.Values(here), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
			if rapid.Bool().Draw(t, "told of all") {
				roster.Read(nodes)
			} else {
				roster.Change(changed, gone)
			}
			if rapid.Bool().Draw(t, "alerts change") {
				firing = map[string]time.Time{}
				for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 0, 5, rapid.ID).Draw(t, "firing") {
					firing[fmt.Sprintf("n%d", i)] = now
				}
				roster.Fire(firing)
			}
			for _, by := range []time.Duration{0, rapid.SampledFrom([]time.Duration{0, time.Minute, 11 * time.Minute, time.Hour, -2 * time.Minute, -time.Hour}).Draw(t, "time goes")} {
				now = now.Add(by)
				fires := func(name string) bool { _, fires := firing[name]; return fires }
				want, got := fleet.New(c, nodes, ledger, fires, now), roster.Fleet(ledger, false, now)
				require.Equal(t, slowCount(c, nodes, fires, now), got.Count())
				require.Equal(t, roster.SidecarsInFlight(now), fleet.NewRosterOf(c, nodes).SidecarsInFlight(now))
				want.WithoutRoster() // each has its own roster
				got.WithoutRoster()
				require.Equal(t, want, got)
			}
			require.ElementsMatch(t, nodes, roster.Nodes())
			require.ElementsMatch(t, slices.Collect(maps.Keys(here)), roster.Names())
			var concerned, breakGlass []string
			for _, n := range nodes {
				m := roster.Member(n.Name)
				require.Same(t, n, m.Node)
				if _, broken := n.Annotations[BreakGlassKey]; broken {
					breakGlass = append(breakGlass, n.Name)
				}
				if m.Concerned {
					concerned = append(concerned, n.Name)
				}
			}
			require.Equal(t, concerned, namesOf(roster.Concerned()))
			require.Equal(t, breakGlass, namesOf(roster.BreakGlass()))
			for i := range 10 {
				name := fmt.Sprintf("n%d", i)
				require.Same(t, here[name], roster.Node(name))
			}
		}
	})
}

// TestAnAnnotationDoesNotCountAsAHeartbeat: a Node is read again even if only an annotation
// changed.
func TestAnAnnotationDoesNotCountAsAHeartbeat(t *testing.T) {
	roster, n := fleet.NewRoster(scene.LimitsAlone()), &corev1.Node{}
	n.Name = "n"
	roster.Change([]*corev1.Node{n}, nil)
	beat := n.DeepCopy()
	beat.ResourceVersion = "2"
	roster.Change([]*corev1.Node{beat}, nil)
	require.Empty(t, roster.Concerned())
	require.Equal(t, "2", roster.Node("n").ResourceVersion, "a write names the version that it was decided on")
	broken := beat.DeepCopy()
	broken.Annotations = map[string]string{BreakGlassKey: "why"}
	roster.Change([]*corev1.Node{broken}, nil)
	require.Equal(t, []string{"n"}, namesOf(roster.Concerned()))
	require.Equal(t, []string{"n"}, namesOf(roster.BreakGlass()))
}

func namesOf(all []*fleet.Member) (out []string) {
	for _, m := range all {
		out = append(out, m.Node.Name)
	}
	return out
}

// slowCount counts by iterating over all Nodes: the nodes that count and the unhealthy ones, in
// total and by zone, and the nodes of each pool.
func slowCount(c *Config, nodes []*corev1.Node, firing func(string) bool, now time.Time) map[string]int {
	out := map[string]int{}
	count := func(key string, by int) {
		if out[key] += by; out[key] == 0 {
			delete(out, key)
		}
	}
	for _, n := range nodes {
		if pool := c.Pool(n); pool != "" {
			count("pool/"+pool, 1)
		}
		if n.CreationTimestamp.After(now.Add(-c.Limits.StartupGrace)) {
			continue
		}
		unhealthy := 0
		if !Ready(n) || Phase(n.Labels[PhaseLabel]) == PhaseExhausted || firing(n.Name) {
			unhealthy = 1
		}
		for _, of := range []string{"all", "zone/" + c.Zone(n)} {
			if of == "zone/" {
				continue
			}
			count(of, 1)
			count("unhealthy "+of, unhealthy)
		}
	}
	return out
}

// TestIdentitiesSayWhenAProviderMayBeAnother: the number changes only when a Node is added or
// deleted, or when its labels or its machine change.
func TestIdentitiesSayWhenAProviderMayBeAnother(t *testing.T) {
	r, n := fleet.NewRoster(scene.LimitsAlone()), scene.Bare("n1")
	n.Labels = map[string]string{"a": "1"}
	change := func(changes bool, to func(n *corev1.Node)) {
		t.Helper()
		was := r.Identities()
		n = n.DeepCopy()
		to(n)
		r.Change([]*corev1.Node{n}, nil)
		require.Equal(t, changes, r.Identities() != was)
	}
	change(true, func(*corev1.Node) {})
	change(false, func(n *corev1.Node) { n.ResourceVersion = "2" })
	change(false, func(n *corev1.Node) { n.Labels[PhaseLabel] = string(PhasePending) })
	change(false, func(n *corev1.Node) { delete(n.Labels, PhaseLabel) })
	change(true, func(n *corev1.Node) { n.Labels["a"] = "2" })
	change(true, func(n *corev1.Node) { n.Labels["b"] = "1" })
	change(true, func(n *corev1.Node) { delete(n.Labels, "b") })
	change(true, func(n *corev1.Node) { n.Spec.ProviderID = "civo://other" })
	was := r.Identities()
	r.Change(nil, []string{"n1"})
	require.NotEqual(t, was, r.Identities())
}
