package engine

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// announcing starts a world whose n0 is under repair.
func announcing(t *testing.T, w *world) {
	w.start()
	w.pass(16 * time.Second)
	w.do(func() { w.mood.before = 2 * time.Second; w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
	require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Phase == remediations.PhaseActing }))
}

// overwritten is the scenario of an announcement that a person takes over during the repair.
func overwritten(t *testing.T, w *world) {
	announcing(t, w)
	w.do(func() {
		w.machines["n0"].announcedBy[noScaleDown] = "a person"
		w.edit("n0", edit(noScaleDown, "until Friday"))
	})
	w.pass(20 * time.Minute)
}

// TestARepairIsAnnouncedOnItsNodeUntilItEnds: the announcements are set with the intent, do not
// hold Drydock itself, and are removed at the end. An announcement that a person set before, or
// took over since, stays.
func TestARepairIsAnnouncedOnItsNodeUntilItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world)
		tale   func(t *testing.T, w *world)
		during []string
		after  map[string]string
	}{
		"nobody else": {nil, announcing, announcements, map[string]string{}},
		"a person before": {
			func(w *world) {
				w.machines["n0"].announcedBy[noScaleDown] = "a person"
				w.edit("n0", edit(noScaleDown, "true"))
			}, announcing, announcements, map[string]string{noScaleDown: "true"},
		},
		"a person since": {nil, overwritten, nil, map[string]string{noScaleDown: "until Friday"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, announces(), 6, func(t *testing.T, w *world) {
				if c.before != nil {
					w.do(func() { c.before(w) })
				}
				c.tale(t, w)
				for _, key := range c.during {
					require.Equal(t, "true", w.nodeOf("n0").Annotations[key])
				}
				w.pass(20 * time.Minute)
				require.Equal(t, []remediations.Outcome{remediations.OutcomeRecovered}, w.outcomes())
				got := map[string]string{}
				for _, key := range announcements {
					if v, ok := w.nodeOf("n0").Annotations[key]; ok {
						got[key] = v
					}
				}
				require.Equal(t, c.after, got)
			})
		})
	}
}

// TestAnnouncementsAreUndoneWhereItEndsOtherwise: the announcements are also removed if the plan
// runs out, or if a person cancels while the node is excluded.
func TestAnnouncementsAreUndoneWhereItEndsOtherwise(t *testing.T) {
	for name, tale := range map[string]func(t *testing.T, w *world){
		"exhausted": func(t *testing.T, w *world) {
			exhausted(t, w)
			w.pass(2 * time.Hour)
			require.Equal(t, remediations.PhaseExhausted, w.recordOf("n0").Phase)
			require.True(t, w.nodeOf("n0").Spec.Unschedulable)
		},
		"cancelled while it was excluded": func(t *testing.T, w *world) {
			announcing(t, w)
			w.do(func() {
				w.hold("n0", func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" })
				w.cancelled[w.record("n0").ID] = time.Now()
				w.edit("n0", edit(remediations.CancelKey, w.record("n0").ID))
			})
			w.pass(10 * time.Minute)
			require.Equal(t, "true", w.nodeOf("n0").Annotations[noScaleDown], "the node is left alone")
			w.do(func() { w.unhold("n0") })
			w.pass(10 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := announces()
			c.Policies[0].Plan = c.Policies[0].Plan[:1]
			inWorld(t, c, 6, func(t *testing.T, w *world) {
				tale(t, w)
				require.NotContains(t, w.nodeOf("n0").Annotations, noScaleDown)
				require.NotContains(t, w.nodeOf("n0").Annotations, noDisrupt)
			})
		})
	}
}

// TestAReaderThatChoseTheNodeBeforeItsAnnouncementIsFirst: Karpenter chooses a node, Drydock
// announces its repair, and Karpenter marks the node a moment later. Drydock waits for that moment
// after its announcement, once. On a node that Karpenter does not have it does not wait.
func TestAReaderThatChoseTheNodeBeforeItsAnnouncementIsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		marked bool
		calls  int
		waits  time.Duration
	}{
		"marked":                      {map[string]string{"karpenter.sh/nodepool": "a"}, true, 0, 0},
		"not marked":                  {map[string]string{"karpenter.sh/nodepool": "a"}, false, 1, 5 * time.Second},
		"not Karpenter's":             {nil, false, 1, 0},
		"marked, and not Karpenter's": {nil, true, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := planned("reboot")
			config.Announce = []string{noRepair}
			inWorld(t, config, 6, func(t *testing.T, w *world) {
				w.do(func() { w.edit("n0", func(n *corev1.Node) { maps.Copy(n.Labels, c.labels) }) })
				w.start()
				w.pass(16 * time.Second)
				w.do(func() { w.ail("n0", 1); w.post("n0", remediations.StatusFiring) })
				require.True(t, w.until(time.Minute, func() bool { r := w.record("n0"); return r != nil && r.Intent != nil }))
				intent := w.recordOf("n0").Intent
				w.pass(time.Until(intent.At.Add(3 * time.Second)))
				if c.marked {
					w.do(func() {
						w.edit("n0", func(n *corev1.Node) {
							n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/rebooting", Effect: corev1.TaintEffectNoSchedule})
						})
					})
				}
				if c.calls == 0 {
					require.True(t, w.until(10*time.Second, func() bool { return w.record("n0").Phase == remediations.PhasePending }))
					require.Equal(t, remediations.ReasonNodeLeaving, w.recordOf("n0").Hold.Reason)
					require.Contains(t, w.recordOf("n0").Hold.Message, "set by Karpenter: Karpenter reboots the node")
				}
				w.pass(time.Minute)
				require.Equal(t, c.calls, w.callCount())
				if c.calls == 0 {
					return
				}
				require.InDelta(t, c.waits.Seconds(), w.calls[0].at.Sub(intent.At).Seconds(), 2)
			})
		})
	}
}
