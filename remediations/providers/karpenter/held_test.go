package karpenter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

func budgets(of ...any) func(*world) {
	return func(w *world) {
		w.patch("NodePool", "pool", m{"spec": m{"disruption": m{"consolidateAfter": "0s", "budgets": of}}})
	}
}

// TestEachHoldIsNamedBeforeTheIntent: with its object. Without it the same NodeClaim is deleted.
func TestEachHoldIsNamedBeforeTheIntent(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*world)
		says string
		soon bool // it passes by itself
	}{
		"NodeClaim being gone": {func(w *world) { w.going("NodeClaim", "one") }, "NodeClaim %one is already being deleted", true},
		"Node being gone":      {func(w *world) { w.going("Node", "one") }, "Node %one is already being deleted", true},
		"disrupted": {func(w *world) {
			w.patch("Node", "one", m{"spec": m{"taints": []any{m{"key": disruptedKey, "effect": "NoSchedule"}}}})
		}, "Karpenter is already disrupting Node %one (taint karpenter.sh/disrupted)", true},
		"Karpenter's own repair is about to begin": {func(w *world) {
			w.patch("NodeClaim", "one", m{"metadata": m{"annotations": m{terminateAt: "2026-11-23T10:00:00Z"}}})
		}, `NodeClaim %one has a time at which its drain ends, "2026-11-23T10:00:00Z", although it is not being deleted`, true},
		"Karpenter's own repair is under way": {func(w *world) {
			w.patch("NodeClaim", "one", m{"metadata": m{"annotations": m{terminateAt: "2026-11-23T10:00:00Z"}}})
			w.going("NodeClaim", "one")
			w.patch("Node", "one", m{"spec": m{"taints": []any{m{"key": disruptedKey, "effect": "NoSchedule"}}}})
		}, "NodeClaim %one is already being deleted; Karpenter is already disrupting Node %one (taint karpenter.sh/disrupted)", true},
		"no finalizer": {func(w *world) {
			w.patch("Node", "one", m{"metadata": m{"finalizers": nil}})
		}, "Node %one lacks the finalizer karpenter.sh/termination, so Karpenter would terminate the instance without a drain", false},
		"do-not-disrupt": {func(w *world) {
			w.patch("Node", "one", m{"metadata": m{"annotations": m{doNotDisrupt: "true"}}})
		}, "Node %one has the annotation karpenter.sh/do-not-disrupt, which forbids a replacement; to allow it: kubectl annotate node %one karpenter.sh/do-not-disrupt-", false},
		"do-not-disrupt on the NodeClaim": {func(w *world) {
			w.patch("NodeClaim", "one", m{"metadata": m{"annotations": m{doNotDisrupt: "true"}}})
		}, "NodeClaim %one has the annotation karpenter.sh/do-not-disrupt, which forbids a replacement; to allow it: kubectl annotate nodeclaim %one karpenter.sh/do-not-disrupt-", false},
		"do-not-repair": {func(w *world) {
			w.patch("Node", "one", m{"metadata": m{"annotations": m{doNotRepair: "true"}}})
		}, "Node %one has the annotation karpenter.sh/do-not-repair, which forbids a replacement; to allow it: kubectl annotate node %one karpenter.sh/do-not-repair-", false},
		"do-not-repair on the NodeClaim": {func(w *world) {
			w.patch("NodeClaim", "one", m{"metadata": m{"annotations": m{doNotRepair: "true"}}})
		}, "NodeClaim %one has the annotation karpenter.sh/do-not-repair, which forbids a replacement; to allow it: kubectl annotate nodeclaim %one karpenter.sh/do-not-repair-", false},
		"Karpenter drains before its own reboot": {func(w *world) {
			w.patch("Node", "one", m{"spec": m{"taints": []any{m{"key": rebootingKey, "effect": "NoSchedule"}}}})
		}, "Karpenter is rebooting Node %one (taint karpenter.sh/rebooting)", true},
		"Karpenter waits for its own reboot": {func(w *world) {
			w.conditions("NodeClaim", "one", condition(registered, "True", "Registered", ""), condition(initialized, "Unknown", "Rebooting", ""), condition("Rebooting", "True", "RebootIssued", "NvidiaFabricError"))
		}, `Karpenter is rebooting the instance of NodeClaim %one: Rebooting is True, RebootIssued, "NvidiaFabricError"`, true},
		"NodePool gone":       {func(w *world) { w.delete("NodePool", "pool") }, "NodePool %pool, the owner of NodeClaim %one, no longer exists", false},
		"NodePool being gone": {func(w *world) { w.going("NodePool", "pool") }, "NodePool %pool is being deleted", false},
		"NodePool not Ready": {func(w *world) {
			w.conditions("NodePool", "pool", condition("Ready", "False", "NodeClassNotReady", "no role"))
		}, `NodePool %pool is not Ready, so it would make no new Node: Ready is False, NodeClassNotReady, "no role"`, false},
		"no word of NodePool":  {func(w *world) { w.conditions("NodePool", "pool") }, "NodePool %pool is not Ready, so it would make no new Node: Karpenter has not set the condition yet", false},
		"no NodePool":          {func(w *world) { w.patch("NodeClaim", "one", m{"metadata": m{"labels": m{poolLabel: nil}}}) }, "NodeClaim %one does not belong to exactly one NodePool", false},
		"a budget of none":     {budgets(m{"nodes": "0"}), "NodePool %pool allows no disruption now (a budget of 0)", true},
		"a budget of 0%":       {budgets(m{"nodes": "50%"}, m{"nodes": "0%", "reasons": []any{"Drifted"}}), "NodePool %pool allows no disruption now (a budget of 0% for Drifted)", true},
		"an active budget":     {budgets(m{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}), `NodePool %pool allows no disruption now (a budget of 0 from "0 9 * * mon-fri" for 8h)`, true},
		"an unreadable budget": {budgets(m{"nodes": "0", "schedule": "0 25 * * *", "duration": "8h"}), `NodePool %pool has a disruption budget of 0 whose schedule or duration is invalid (schedule "0 25 * * *")`, false},
		"a pod": {func(w *world) {
			w.pod(m{"annotations": m{doNotDisrupt: "true"}}, nil, "True", nil)
		}, "Pod %ns/%busy must not be disrupted (annotation karpenter.sh/do-not-disrupt), and NodeClaim %one has no terminationGracePeriod", false},
		"a pod's budget": {func(w *world) {
			w.pod(nil, nil, "True", budgetStatus(0, 1, 1))
		}, "PodDisruptionBudget %ns/%busy allows no eviction of Pod %busy, and NodeClaim %one has no terminationGracePeriod", true},
		"a pod's budget that is not kept": {func(w *world) {
			w.pod(nil, nil, "False", budgetStatus(0, 0, 1))
		}, "PodDisruptionBudget %ns/%busy allows no eviction of Pod %busy", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r, one := w.replacer(nil), w.machine("one")
			control := r.Survey(t.Context(), one)
			require.Empty(t, control.Trouble, "the control")
			require.NotEmpty(t, control.Before)
			c.make(w)
			was, want := w.asked(), w.says(c.says)
			said := r.Survey(t.Context(), one)
			require.Contains(t, said.Trouble, want)
			require.Empty(t, said.Before)
			require.False(t, said.Fleetwide)
			require.Equal(t, c.soon, said.Again == remediations.AskPassing, said.Again)
			one.Before = control.Before
			outcome, err := r.Act(t.Context(), one, func() error { return nil })
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, want)
			require.Equal(t, was, w.asked(), "nothing was deleted")
		})
	}
}

// TestWhatLooksLikeAHoldAndIsNone: these states do not hold.
func TestWhatLooksLikeAHoldAndIsNone(t *testing.T) {
	blocked := func(meta, spec m, ready string) func(*world) {
		return func(w *world) { w.pod(meta, spec, ready, budgetStatus(0, 1, 1)) }
	}
	for name, make := range map[string]func(*world){
		"a budget that is over":     budgets(m{"nodes": "0", "schedule": "0 1 * * *", "duration": "2h"}),
		"a budget that allows some": budgets(m{"nodes": "1"}, m{"nodes": "5%"}),
		"Drydock's own announcement": func(w *world) {
			r := remediations.Record{V: 1, ID: "r1", Policy: "p", Cause: remediations.Cause{Alert: "a"}, Phase: remediations.PhasePending, Step: remediations.StepRef{Name: "replace", Attempt: 1},
				Began: time.Unix(1, 0), Since: time.Unix(1, 0), Deadline: time.Unix(1, 0), Undo: []remediations.Undo{{Kind: remediations.UndoAnnotation, Key: doNotDisrupt, At: time.Unix(1, 0)}, {Kind: remediations.UndoAnnotation, Key: doNotRepair, At: time.Unix(1, 0)}}}
			w.patch("Node", "one", m{"metadata": m{"annotations": m{doNotDisrupt: "true", doNotRepair: "true", remediations.NodeRepairKey: r.Encode()}}})
		},
		"Karpenter's own reboot succeeded": func(w *world) {
			w.conditions("NodeClaim", "one", condition(registered, "True", "Registered", ""), condition(initialized, "Unknown", "ResourceNotRegistered", ""), condition("Rebooting", "False", "RebootSucceeded", ""))
		},
		"Karpenter's own reboot failed": func(w *world) {
			w.conditions("NodeClaim", "one", condition(registered, "True", "Registered", ""), condition("Rebooting", "False", "RebootFailed", ""))
		},
		"annotations that say false": func(w *world) {
			no := m{"metadata": m{"annotations": m{doNotDisrupt: "false", doNotRepair: "false"}}}
			w.patch("Node", "one", no)
			w.patch("NodeClaim", "one", no)
		},
		"the other NodeClaim's reboot": func(w *world) {
			w.conditions("NodeClaim", "ten", condition(registered, "True", "Registered", ""), condition("Rebooting", "True", "RebootIssued", ""))
		},
		"the other Node's annotation":  func(w *world) { w.patch("Node", "ten", m{"metadata": m{"annotations": m{doNotDisrupt: "true"}}}) },
		"a pod that is not ready":      blocked(nil, nil, "False"),
		"a pod of the kubelet's":       blocked(m{"ownerReferences": []any{m{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}}}, nil, "True"),
		"a pod that stays":             blocked(nil, m{"tolerations": []any{m{"operator": "Exists"}}}, "True"),
		"a pod on another Node":        blocked(nil, m{"nodeName": "elsewhere"}, "True"),
		"a pod whose budget allows it": func(w *world) { w.pod(nil, nil, "True", budgetStatus(1, 1, 0)) },
		"a drain that ends": func(w *world) {
			w.gone()
			w.claim("one", "one", m{"terminationGracePeriod": "10m"})
			w.node("one")
			w.pod(m{"annotations": m{doNotDisrupt: "true"}}, nil, "True", budgetStatus(0, 1, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			make(w)
			require.Empty(t, w.replacer(nil).Survey(t.Context(), w.machine("one")).Trouble)
		})
	}
}

// TestWhoseNodeClaimItIs: the Node's owner, both provider IDs and the Node in the NodeClaim's
// status must agree, and no other object may have any of them.
func TestWhoseNodeClaimItIs(t *testing.T) {
	status := func(of m) func(*world) {
		return func(w *world) { w.patch("NodeClaim", "one", m{"status": of}, "status") }
	}
	for name, c := range map[string]struct {
		change func(*world)
		node   func(*engine.Machine)
		says   string
	}{
		"no ID":                      {nil, func(m *engine.Machine) { m.ProviderID = "" }, "the Node has no spec.providerID"},
		"another ID":                 {nil, func(m *engine.Machine) { m.ProviderID = "lab://x" }, `the Node's spec.providerID is now "lab://%one", not "lab://x"`},
		"another Node":               {nil, func(m *engine.Machine) { m.UID = "x" }, "the Node is gone, or another Node now has its name"},
		"no Node":                    {func(w *world) { w.delete("Node", "one") }, nil, "the Node is gone, or another Node now has its name"},
		"no owner":                   {func(w *world) { w.patch("Node", "one", m{"metadata": m{"ownerReferences": nil}}) }, nil, "the Node has 0 NodeClaims as owners"},
		"owner gone":                 {func(w *world) { w.delete("NodeClaim", "one") }, nil, "NodeClaim %one with the UID "},
		"owner's ID":                 {status(m{"providerID": "lab://y"}), nil, `NodeClaim %one has the provider ID "lab://y", but the Node has "lab://%one"`},
		"owner's Node":               {status(m{"nodeName": "y"}), nil, `NodeClaim %one has another Node in status.nodeName: "y"`},
		"many Nodes, says Karpenter": {status(m{"conditions": []any{condition(registered, "False", "MultipleNodesFound", "two")}}), nil, `NodeClaim %one has no registered Node: Registered is False, MultipleNodesFound, "two"`},
		"its ID twice": {func(w *world) {
			w.claim("twin", "one", nil)
			w.patch("NodeClaim", "twin", m{"status": m{"nodeName": "y"}}, "status")
		}, nil, "NodeClaim %twin has the Node's provider ID or has the Node"},
		"its Node twice": {func(w *world) {
			w.claim("twin", "one", nil)
			w.patch("NodeClaim", "twin", m{"status": m{"providerID": "y"}}, "status")
		}, nil, "NodeClaim %twin has the Node's provider ID or has the Node"},
		"two owners": {func(w *world) {
			w.patch("Node", "one", m{"metadata": m{"ownerReferences": append(owner("NodeClaim", w.get("NodeClaim", "one")), owner("NodeClaim", w.get("NodeClaim", "ten"))...)}})
		}, nil, "the Node has 2 NodeClaims as owners"},
		"two Nodes": {func(w *world) {
			w.create("Node", "twin", m{"labels": m{poolLabel: w.name("pool")}, "ownerReferences": owner("NodeClaim", w.get("NodeClaim", "one"))}, nil)
		}, nil, "Node %twin belongs to NodeClaim %one as well"},
		"two Nodes of one ID": {func(w *world) {
			w.create("Node", "twin", m{"labels": m{poolLabel: w.name("pool")}}, m{"providerID": w.id("one")})
		}, nil, `Node %twin has the same spec.providerID "lab://%one"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			one := w.machine("one")
			require.Empty(t, w.replacer(nil).Survey(t.Context(), one).Trouble, "the control")
			if c.change != nil {
				c.change(w)
			}
			if c.node != nil {
				c.node(&one)
			}
			said := w.replacer(nil).Survey(t.Context(), one)
			require.Contains(t, said.Trouble, w.says(c.says))
			require.False(t, said.Fleetwide)
			require.Equal(t, remediations.AskMended, said.Again)
		})
	}
}

// TestADeletionNamesTheNodeClaimByItsUID: a NodeClaim that differs only in its UID, and appears at
// the last moment, is not deleted.
func TestADeletionNamesTheNodeClaimByItsUID(t *testing.T) {
	w := newWorld(t)
	r, one := w.replacer(nil), w.machine("one")
	one.Before = r.Survey(t.Context(), one).Before
	outcome, err := r.Act(t.Context(), one, func() error {
		w.delete("NodeClaim", "one")
		w.claim("one", "one", nil)
		w.patch("Node", "one", m{"metadata": m{"ownerReferences": owner("NodeClaim", w.get("NodeClaim", "one"))}})
		return nil
	})
	require.Equal(t, remediations.CallRefused, outcome, "%v", err)
	require.Empty(t, w.asked())

	outcome, err = r.Act(t.Context(), one, func() error { return nil }) // nor one that appears before the call
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "but the record has NodeClaim "+w.name("one")+" with the UID")
	require.Empty(t, w.asked())

	one.Before = r.Survey(t.Context(), one).Before
	outcome, err = r.Act(t.Context(), one, func() error { return nil })
	require.NoError(t, err, "the control: the new one is surveyed")
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, []string{string(w.get("NodeClaim", "one").GetUID())}, w.asked())
	_, err = w.of("Node").Get(t.Context(), w.name("one"), metav1.GetOptions{})
	require.NoError(t, err, "Drydock deletes no Node")
}

// TestABudgetOfNoneHoldsForAsLongAsItForbids: a budget that allows some disruptions never holds,
// whatever else the pool does.
func TestABudgetOfNoneHoldsForAsLongAsItForbids(t *testing.T) {
	now := monday
	w := newWorld(t)
	r, one := w.replacer(func(o *Options) { o.Now = func() time.Time { return now } }), w.machine("one")
	surveyed := func() remediations.Survey { return r.Survey(t.Context(), one) }
	budgets(m{"nodes": "1"})(w)
	w.claim("twin", "twin", nil)
	w.going("NodeClaim", "twin")
	require.Empty(t, surveyed().Trouble, "one goes already, and that is Karpenter's to count")
	w.delete("NodeClaim", "twin")

	budgets(m{"nodes": "1"}, m{"nodes": "0", "schedule": "0 9 * * *", "duration": "2h"})(w)
	require.Contains(t, surveyed().Trouble, w.says("NodePool %pool allows no disruption now"))
	now = monday.Add(2 * time.Hour)
	require.Empty(t, surveyed().Trouble, "its time is over")

	budgets(m{"nodes": "0"})(w)
	require.Contains(t, surveyed().Trouble, w.says("NodePool %pool allows no disruption now (a budget of 0)"))
	budgets(m{"nodes": "1"})(w)
	one.Before = surveyed().Before
	outcome, err := r.Act(t.Context(), one, func() error { return nil })
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, []string{string(w.get("NodeClaim", "one").GetUID())}, w.asked())
}

// TestAnOwnerThatBeganAfterTheLastLookIsFirst: Karpenter begins its own reboot of the machine after
// Drydock has read the NodeClaim and before the deletion.
func TestAnOwnerThatBeganAfterTheLastLookIsFirst(t *testing.T) {
	for _, begins := range []string{"one", "ten"} {
		t.Run(begins, func(t *testing.T) {
			w := newWorld(t)
			r, one := w.replacer(nil), w.machine("one")
			one.Before = r.Survey(t.Context(), one).Before
			outcome, err := r.Act(t.Context(), one, func() error {
				w.conditions("NodeClaim", begins, condition(registered, "True", "Registered", ""), condition("Rebooting", "True", "RebootRequested", ""))
				return nil
			})
			if begins == "ten" { // the control
				require.NoError(t, err)
				require.Equal(t, remediations.CallAccepted, outcome)
				return
			}
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorIs(t, err, engine.ErrLater)
			require.ErrorContains(t, err, "has changed since Drydock read it")
			require.Empty(t, w.asked())
		})
	}
}
