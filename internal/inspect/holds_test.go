package inspect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	nodes "drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// ledgerSaying is a ledger with the hold's message, and with what the hold concerns.
func ledgerSaying(reason remediations.Reason, message string, about remediations.Concern) *Ledger {
	whole := &ledger.Ledger{Status: ledger.Status{
		Holds: map[remediations.Reason]string{reason: message}, Concerns: map[remediations.Reason]remediations.Concern{reason: about},
	}}
	return &Ledger{Whole: whole, Status: &whole.Status}
}

// fleetHolds are the decisions whose holds the engine puts into the ledger for the reason.
func fleetHolds(t *testing.T, reason remediations.Reason, saying string) (out []lifecycle.Decision) {
	t.Helper()
	for _, g := range scene.GoldensIn(t, "../../../remediations/targets/node/testdata/decide") {
		if d := nodes.Decide(g.State(t), scene.Noon); d.Verb == lifecycle.VerbHold && d.Fleetwide && d.Reason == reason && strings.Contains(d.Message, saying) {
			out = append(out, d)
		}
	}
	require.NotEmpty(t, out, "the engine says that no more: %s", saying)
	return out
}

// TestTheHoldOfOnePolicyIsNotThatOfAnother: the ledger has one message for each reason, and a
// policy's is shown with that policy alone.
func TestTheHoldOfOnePolicyIsNotThatOfAnother(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}
	const own = "node-not-ready"
	others := []string{"node-not", "node-not-ready-gpu", "gpu-node-not-ready", "ready"}
	for _, c := range []struct {
		reason remediations.Reason
		saying string
	}{
		{remediations.ReasonNotWitnessed, "has no witness"},
		{remediations.ReasonProviderAbsent, "can be carried out"},
		{remediations.ReasonClusterWide, "changes the whole cluster"},
	} {
		for _, d := range fleetHolds(t, c.reason, c.saying) {
			message := d.Message
			l := ledgerSaying(c.reason, message, d.Concern)
			require.Equal(t, message, l.fleetwide(c.reason, n, own, ""))
			require.Equal(t, &Hold{Reason: c.reason, Message: message}, l.HoldNow(n, own, nil, scene.Noon))
			for _, other := range others {
				require.Empty(t, l.fleetwide(c.reason, n, other, ""), "%s: %s", other, message)
				require.Nil(t, l.HoldNow(n, other, nil, scene.Noon), "%s: %s", other, message)
			}
		}
	}
	l := ledgerSaying(remediations.ReasonProviderAbsent, "Civo refuses the API key", remediations.Concern{})
	require.NotNil(t, l.HoldNow(n, own, nil, scene.Noon), "a provider's answer names no policy")
	for _, saying := range []string{"since the provider refuses", "repairs failed"} {
		for _, d := range fleetHolds(t, remediations.ReasonPolicyFailing, saying) {
			message := d.Message
			l := ledgerSaying(remediations.ReasonPolicyFailing, message, d.Concern)
			l.Status.Exhausted = map[string]int{own: ledger.FailingAfter, others[0]: ledger.FailingAfter}
			require.Equal(t, message, l.fleetwide(remediations.ReasonPolicyFailing, n, own, ""))
			require.Equal(t, "policy node-not is stopped: its last 3 repairs failed", l.fleetwide(remediations.ReasonPolicyFailing, n, others[0], ""))
		}
	}
}

// TestOneChangeOfTheWholeClusterHoldsTheNextAlone: whatever its policy is, and no other step.
func TestOneChangeOfTheWholeClusterHoldsTheNextAlone(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}
	for _, d := range fleetHolds(t, remediations.ReasonClusterWide, "changes the whole cluster") {
		message := d.Message
		l := ledgerSaying(remediations.ReasonClusterWide, message, d.Concern)
		for _, policy := range []string{"node-not-ready", "another"} {
			require.Equal(t, message, l.fleetwide(remediations.ReasonClusterWide, n, policy, "apply-cni"))
			require.Empty(t, l.fleetwide(remediations.ReasonClusterWide, n, policy, "reboot"))
		}
	}
}

// TestTheHoldOfOneZoneIsNotThatOfAnother, nor that of a pool, by the labels that the ledger names.
func TestTheHoldOfOneZoneIsNotThatOfAnother(t *testing.T) {
	t.Parallel()
	one := remediations.Quantity{Value: 1}
	for limit, change := range map[string]func(*remediations.Limits){
		"zone": func(l *remediations.Limits) { l.ConcurrentPerZone = one },
		"pool": func(l *remediations.Limits) { l.ConcurrentPerPool = one },
		"all":  func(l *remediations.Limits) { l.Concurrent = one },
	} {
		c := scene.LimitsAlone()
		c.Limits.ZoneLabel, c.Limits.PoolLabels = "example.com/rack", []string{"example.com/pool", "old-pool"}
		change(&c.Limits)
		herd := scene.Herd(3, 0)
		for i, n := range herd {
			n.Labels["example.com/rack"], n.Labels["old-pool"] = "r7", "p"
			if i == 2 {
				n.Labels["example.com/rack"], n.Labels["old-pool"] = "r7-b", "p-b"
			}
		}
		scene.InFlight(herd[0], "reboot")
		spent := scene.FleetOf(c, herd, nil, scene.Noon).Spent(c, herd[1], "", false)
		l := ledgerSaying(remediations.ReasonAtLimit, spent.Why(), spent.Concern)
		l.Status.Limits = c.Limits.Words()
		require.Equal(t, l.Status.Holds[remediations.ReasonAtLimit], l.fleetwide(remediations.ReasonAtLimit, herd[1], "p", ""), limit)
		require.NotEmpty(t, l.fleetwide(remediations.ReasonAtLimit, herd[1], "p", ""), limit)
		if other := l.HoldNow(herd[2], "p", nil, scene.Noon); limit == "all" {
			require.NotNil(t, other)
		} else {
			require.Nil(t, other, limit)
		}
	}
}

// TestTheBreakerThatHoldsIsTheNodesOwn, by the zone label that the ledger names.
func TestTheBreakerThatHoldsIsTheNodesOwn(t *testing.T) {
	t.Parallel()
	rack := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2", Labels: map[string]string{"example.com/rack": name, corev1.LabelTopologyZone: "fra1"}}}
	}
	c := scene.LimitsAlone()
	c.Limits.ZoneLabel = "example.com/rack"
	l := ledgerSaying(remediations.ReasonFleetUnhealthy, lifecycle.StormGoesOn(c, "zone/r7", 3, 6), remediations.Concern{Zone: "r7"})
	l.Status.Limits = c.Limits.Words()
	l.Status.Breakers = map[string]ledger.Breaker{"zone/r7": {State: ledger.BreakerOpen, Unhealthy: 3, Nodes: 6}}
	held := func(n *corev1.Node) string { return l.fleetwide(remediations.ReasonFleetUnhealthy, n, "p", "") }
	require.Equal(t, l.Status.Holds[remediations.ReasonFleetUnhealthy], held(rack("r7")))
	require.Empty(t, held(rack("r7-b")))
	s, ill := &Status{Ledger: *l}, rack("r7")
	ill.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	s.CountIll(ill, scene.Noon)
	require.Len(t, s.Ill["zone/r7"], 1)

	l.Status.Breakers["zone/r7-b"] = ledger.Breaker{State: ledger.BreakerOpen, Unhealthy: 2, Nodes: 4}
	require.Equal(t, "the breaker of zone/r7-b is open: 2 of 4 nodes are unhealthy", held(rack("r7-b")))
	l.Status.Breakers["zone/r7-b"] = ledger.Breaker{State: ledger.BreakerHalfOpen}
	require.Empty(t, held(rack("r7-b")), "this node may be the one that goes first")
}

// TestAnOlderLedgerNamesNoLabels: then the default ones say which zone and pool a node is in.
func TestAnOlderLedgerNamesNoLabels(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		corev1.LabelTopologyZone: "fra1", "karpenter.sh/nodepool": "gpu", "example.com/rack": "r7", "example.com/pool": "p",
	}}}
	older := &Ledger{Status: &ledger.Status{Limits: map[string]string{"unhealthy": "20%"}}}
	for name, l := range map[string]*Ledger{"none": {}, "older": older} {
		require.Equal(t, []string{"fra1", "gpu"}, []string{l.Zone(n), l.Pool(n)}, name)
	}
	c, _, err := config.Read(strings.NewReader(`{apiVersion: drydock.dev/v1alpha1, kind: Config, mode: observe, receiver: {tokenFile: /t}, alertmanager: {urls: ["http://a:9093"]}}`), config.Options{SkipFiles: true})
	require.NoError(t, err)
	require.Equal(t, corev1.LabelTopologyZone, c.Core.Limits.ZoneLabel, "those of the configuration")
	require.Equal(t, c.Core.Limits.PoolLabels, poolLabels, "those of the configuration")

	older.Status.Limits = remediations.Limits{ZoneLabel: "example.com/rack", PoolLabels: []string{"a", "example.com/pool"}}.Words()
	require.Equal(t, []string{"r7", "p"}, []string{older.Zone(n), older.Pool(n)})
	older.Status.Limits = remediations.Limits{ZoneLabel: "example.com/rack"}.Words()
	require.Empty(t, older.Pool(n), "limits.poolLabels is empty: no pool limit binds")
}

// TestWhyIgnoresHoldsOfOtherPolicies of a guard that could not be asked.
func TestWhyIgnoresHoldsOfOtherPolicies(t *testing.T) {
	t.Parallel()
	s := onNode(nil)
	unread := lifecycle.GuardAnswer{Reason: remediations.ReasonNotWitnessed, Standing: lifecycle.GuardNotSeen, Message: "nobody read the lease"}
	held := fleetHolds(t, remediations.ReasonNotWitnessed, "has no witness")[0]
	s.Ledger = *ledgerSaying(remediations.ReasonNotWitnessed, held.Message, held.Concern)
	of := func(policy string) *lifecycle.Candidate {
		return &lifecycle.Candidate{Policy: &remediations.Policy{Name: policy}}
	}
	require.Equal(t, lifecycle.GuardHolds, s.recorded(unread, nil, of("node-not-ready")).Standing, "the control")
	require.Equal(t, unread, s.recorded(unread, nil, of("node-not-ready-gpu")))
}
