package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
)

// TestAProviderIsUsedByNoMoreRepairsThanItsLimit: many machines of two providers fail, processes
// die, and replacements take the Nodes away. The world checks the limit at each intent. In the end
// all are cured, so no node is held for ever.
func TestAProviderIsUsedByNoMoreRepairsThanItsLimit(t *testing.T) {
	t.Parallel()
	most := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := ofTwo(rapid.SampledFrom([][]string{{"reboot"}, {"drain", "reboot"}, {"drain", "replace"}}).Draw(rt, "plan")...)
		c.Limits.Concurrent.Value, c.Limits.ConcurrentPerZone.Value, c.Limits.ConcurrentPerPool.Value = 9, 9, 9
		c.Limits.Unhealthy, c.Limits.CommonCause = remediations.Quantity{Value: 12}, remediations.CommonCause{}
		c.Limits.RepairsPerNode, c.Policies[0].Cooldown = 99, 0
		c.Providers[0].Concurrent = rapid.IntRange(1, 2).Draw(rt, "limit")
		inBubble(t, func(*testing.T) {
			w := newWorldOf(c, 12, layout{1, 1, 0})
			defer w.close()
			w.do(func() {
				for _, n := range []string{"n1", "n3", "n5"} {
					w.machineAt(n, "bmc://"+n)
				}
			})
			w.start()
			w.pass(16 * time.Second)
			sick := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n0", "n1", "n2", "n3", "n4", "n5", "n6"}), 3, 6, rapid.ID[string]).Draw(rt, "sick")
			w.do(func() {
				for _, n := range sick {
					w.ail(n, 1)
					w.post(n, remediations.StatusFiring)
				}
			})
			w.pass(20 * time.Second)
			most = max(most, at(w, func() int { return len(w.inFlight("")) }))
			for range rapid.IntRange(0, 2).Draw(rt, "restarts") {
				w.pass(time.Duration(rapid.IntRange(5, 300).Draw(rt, "after")) * time.Second)
				w.restart(c)
			}
			w.pass(2 * time.Hour)
			if v := w.violated(); v != "" {
				rt.Fatal(v)
			}
			w.do(func() {
				for name, m := range w.machines {
					if !m.well() {
						rt.Fatalf("%s is still sick", name)
					}
				}
			})
		})
	})
	require.Greater(t, most, 2, "the other provider's machines do not wait")
}

// checkProvider checks the limit of the first provider, civo, from the repairs really in flight and
// the drained ones that wait.
func (w *world) checkProvider(i *instance, cur *corev1.Node, busy []*corev1.Node) {
	if len(i.config.Providers) == 0 || i.config.Providers[0].Concurrent == 0 {
		return
	}
	most, ofCivo := i.config.Providers[0].Concurrent, func(n *corev1.Node) bool { return strings.HasPrefix(n.Spec.ProviderID, "civo://") }
	if !ofCivo(cur) {
		return
	}
	users := 1
	for _, n := range busy {
		if ofCivo(n) {
			users++
		}
	}
	if users > most {
		w.fail("3: %d repairs use the provider civo, and its limit is %d", users, most)
	}
}
