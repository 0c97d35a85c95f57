package karpenter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/providertest"
)

// TestWhatProvesAReplacement beyond the stages in the contract of all providers.
func TestWhatProvesAReplacement(t *testing.T) {
	fresh := func(w *world) { w.later(); w.gone(); w.claim("twin", "twin", nil) }
	for name, c := range map[string]struct {
		change func(*world)
		lacks  string // empty: nothing is lacking
		gone   bool
	}{
		"nothing was done": {func(*world) {}, "the old NodeClaim %one still exists: it is not being deleted; the old Node %one still exists", false},
		"its drain hangs": {func(w *world) {
			w.going("NodeClaim", "one")
			w.conditions("NodeClaim", "one", condition("Drained", "False", "Draining", "3 pods"))
		}, `still exists: Drained is False, Draining, "3 pods"`, false},
		"the Node lingers":    {func(w *world) { w.later(); w.delete("NodeClaim", "one"); w.claim("twin", "twin", nil) }, "the old Node %one still exists", true},
		"NodePool is another": {func(w *world) { w.gone(); w.delete("NodePool", "pool") }, "NodePool %pool is gone, or another one has its name", false},
		"NodePool's namesake": {func(w *world) {
			w.gone()
			w.delete("NodePool", "pool")
			class := m{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
			w.create("NodePool", "pool", nil, m{"template": m{"spec": m{"nodeClassRef": class, "requirements": []any{}}}})
		}, "NodePool %pool is gone, or another one has its name", false},
		"not Initialized": {func(w *world) {
			fresh(w)
			w.conditions("NodeClaim", "twin", condition(registered, "True", "x", ""), condition(initialized, "Unknown", "x", ""))
		}, "NodeClaim %twin is not ready yet: Karpenter has not set the condition yet; NodePool %pool has no new NodeClaim with a Node", true},
		"not Registered": {func(w *world) {
			fresh(w)
			w.conditions("NodeClaim", "twin", condition(initialized, "True", "x", ""))
		}, "has no new NodeClaim with a Node", true},
		"goes already": {func(w *world) { fresh(w); w.going("NodeClaim", "twin"); w.unbound("busy", nil, nil) }, "has no new NodeClaim with a Node", true},
		"has the old ID": {func(w *world) {
			fresh(w)
			w.patch("NodeClaim", "twin", m{"status": m{"providerID": w.id("one")}}, "status")
		}, "NodeClaim %twin has the old one's provider ID; NodePool %pool has no new NodeClaim with a Node", true},
		"of another NodePool": {func(w *world) {
			fresh(w)
			w.patch("NodeClaim", "twin", m{"metadata": m{"labels": m{poolLabel: "another"}}})
			w.unbound("busy", nil, nil)
		}, "has no new NodeClaim with a Node", true},
		"replaced": {fresh, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.replacer(nil)
			kept := r.Survey(t.Context(), w.machine("one")).Before
			c.change(w)
			said, err := r.Replaced(t.Context(), kept)
			require.NoError(t, err)
			require.Equal(t, c.gone, said.MachineGone, said.Missing)
			require.Equal(t, c.lacks == "", said.Missing == "", said.Missing)
			require.Contains(t, said.Missing, w.says(c.lacks))
			require.False(t, said.NoneNeeded)
		})
	}
}

// TestTheProofThatNoReplacementIsNeeded: the NodeClaim and the Node are gone, and no pod may need
// another machine.
func TestTheProofThatNoReplacementIsNeeded(t *testing.T) {
	unschedulable := func(w *world, status m) {
		w.patch("Pod", "busy", m{"status": status}, "status")
	}
	for name, c := range map[string]struct {
		pool   m
		now    func() time.Time
		change func(*world)
		lacks  string // empty: nothing is lacking, so no new machine is needed
	}{
		"nothing waits": {change: func(*world) {}},
		"a pod fits on no node": {
			change: func(w *world) {
				w.unbound("busy", nil, nil)
				unschedulable(w, m{"conditions": []any{condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")}})
			},
			lacks: `: PodScheduled is False, Unschedulable, "0/3 nodes are available"; NodePool %pool has no new NodeClaim with a Node`,
		},
		"no scheduler has looked": {change: func(w *world) { w.unbound("busy", nil, nil) }, lacks: "and no scheduler has tried to place it"},
		"a pod waits for another to give way": {
			change: func(w *world) {
				w.unbound("busy", nil, nil)
				unschedulable(w, m{"nominatedNodeName": "n1", "conditions": []any{condition("PodScheduled", "False", "Unschedulable", "")}})
			},
			lacks: "Pod %ns/%busy has had no node since",
		},
		"it waits for somebody's word": {change: func(w *world) { w.unbound("busy", nil, m{"schedulingGates": []any{m{"name": "example.com/quota"}}}) }},
		"it is for one node": {change: func(w *world) {
			w.unbound("busy", m{"ownerReferences": []any{m{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}}}, nil)
		}},
		"it goes already": {change: func(w *world) {
			w.unbound("busy", m{"finalizers": []any{"drydock.dev/test"}}, nil)
			require.NoError(w.t, w.of("Pod").Delete(w.ctx(), w.name("busy"), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
		}},
		"it waited before the fault": {
			now:    func() time.Time { return time.Now().Add(displacedBefore + time.Hour) },
			change: func(w *world) { w.unbound("busy", nil, nil) },
		},
		"its pod has not been made again yet": {
			change: func(w *world) { w.unbound("busy", nil, m{"nodeName": w.name("one")}) },
			lacks:  "Pod %ns/%busy of the old Node still exists; NodePool %pool has no new NodeClaim with a Node",
		},
		"its pod had ended": {change: func(w *world) {
			w.unbound("busy", nil, m{"nodeName": w.name("one")})
			unschedulable(w, m{"phase": "Succeeded"})
		}},
		"a pod of another node": {change: func(w *world) { w.unbound("busy", nil, m{"nodeName": w.name("ten")}) }},
		"a NodeClaim is on its way": {
			change: func(w *world) {
				w.later()
				w.claim("twin", "twin", nil)
				w.conditions("NodeClaim", "twin", condition("Launched", "Unknown", "LaunchInProgress", "soon"))
			},
			lacks: `NodeClaim %twin is not ready yet: Launched is Unknown, LaunchInProgress, "soon"; NodePool %pool has no new NodeClaim with a Node`,
		},
		"a static NodePool promises one": {pool: m{"replicas": 2}, change: func(*world) {}, lacks: "NodePool %pool has no new NodeClaim with a Node"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, c.pool)
			r := w.replacer(func(o *Options) {
				if c.now != nil {
					o.Now = c.now
				}
			})
			kept := r.Survey(t.Context(), w.machine("one")).Before
			w.gone()
			c.change(w)
			said, err := r.Replaced(t.Context(), kept)
			require.NoError(t, err)
			require.True(t, said.MachineGone)
			require.Empty(t, said.Successors)
			require.Contains(t, said.Missing, w.says(c.lacks))
			require.Equal(t, c.lacks == "", said.NoneNeeded, said.Missing)
			require.Equal(t, c.lacks == "", said.Missing == "", said.Missing)
		})
	}
}

// TestManyPodsAreOneShortSentence: many waiting pods make one short sentence.
func TestManyPodsAreOneShortSentence(t *testing.T) {
	w := newWorld(t)
	r := w.replacer(nil)
	kept := r.Survey(t.Context(), w.machine("one")).Before
	w.gone()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.unbound(name, nil, nil)
	}
	said, err := r.Replaced(t.Context(), kept)
	require.NoError(t, err)
	require.Contains(t, said.Missing, "; 2 more pods; NodePool")
}

// TestPodsThatCannotBeReadProveNothing: neither those of the old Node nor those without a node.
func TestPodsThatCannotBeReadProveNothing(t *testing.T) {
	server := providertest.APIServer(t, lab.Shared(t).AdminConfig(), metav1.StatusReasonConflict)
	w := newWorld(t)
	wire := providertest.NewHTTP(t, server)
	t.Cleanup(wire.Close)
	r := w.replacer(func(o *Options) { o.API = &rest.Config{Host: wire.URL(), BearerToken: token} })
	r.Page = 1 << 14
	kept := r.Survey(t.Context(), w.machine("one")).Before
	w.gone()
	const reads = 6 // the NodePool, the NodeClaim, the Node, the NodeClaims, the old Node's pods, the pods without a node
	for failing := range reads + 1 {
		done := len(wire.Requests())
		wire.Misbehave(failing, 1, providertest.Fault{Kind: providertest.Answer, Status: 500})
		said, err := r.Replaced(t.Context(), kept)
		if failing == reads { // the control
			require.NoError(t, err)
			require.True(t, said.NoneNeeded)
			require.Len(t, wire.Requests()[done:], reads)
			continue
		}
		require.Error(t, err)
		require.False(t, said.NoneNeeded)
	}
}

// TestSinceWhenAPodMayBeDisplaced: since some time before the earliest sign of the fault.
func TestSinceWhenAPodMayBeDisplaced(t *testing.T) {
	c := &Client{now: func() time.Time { return monday }}
	record := remediations.Record{
		V: remediations.RecordVersion, ID: "abcdef", Policy: "p", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: remediations.PhasePending,
		Step: remediations.StepRef{Name: "replace", Attempt: 1}, Began: monday.Add(-2 * time.Hour), Since: monday, Deadline: monday.Add(time.Hour),
	}
	ready := func(status corev1.ConditionStatus, ago time.Duration) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(monday.Add(-ago))}}
	}
	for name, of := range map[string]struct {
		node corev1.Node
		ago  time.Duration
	}{
		"nothing says so":    {corev1.Node{}, 0},
		"Ready for long":     {corev1.Node{Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionTrue, 9*time.Hour)}}, 0},
		"not Ready for long": {corev1.Node{Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionUnknown, time.Hour)}}, time.Hour},
		"under repair for longer": {corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{remediations.NodeRepairKey: remediations.EncodeJSON(record)}},
			Status:     corev1.NodeStatus{Conditions: ready(corev1.ConditionUnknown, time.Hour)},
		}, 2 * time.Hour},
		"its alert is older": {corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			remediations.NodeRepairKey: remediations.EncodeJSON(record),
			remediations.AlertPrefix + "9f2c0e5b6d1a4c33": remediations.EncodeJSON(remediations.Alert{
				V: remediations.RecordVersion, Name: "NodeNotReady", Policy: "p", Status: remediations.StatusFiring, StartsAt: monday.Add(-3 * time.Hour), ReceivedAt: monday,
			}),
		}}}, 3 * time.Hour},
	} {
		require.Equal(t, monday.Add(-of.ago-displacedBefore).Truncate(time.Second), c.displacedSince(&of.node), name)
	}
}
