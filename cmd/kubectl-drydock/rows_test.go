package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

const fingerprint = "9f2c0e5b6d1a4c33"

// alerted is a node with a firing alert of the policy and without a record.
func alerted(name, policy string) *corev1.Node {
	value := fmt.Sprintf(`{"v":1,"alertname":"NodeNotReady","policy":%q,"status":"firing","startsAt":"2026-11-20T20:50:00Z","receivedAt":"2026-11-20T20:55:00Z","labels":{}}`, policy)
	return node(name, map[string]string{remediations.AlertPrefix + fingerprint: value})
}

func is(n *corev1.Node, ready corev1.ConditionStatus) *corev1.Node {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

func labelled(n *corev1.Node, key, value string) *corev1.Node { n.Labels[key] = value; return n }

func annotated(n *corev1.Node, key, value string) *corev1.Node { n.Annotations[key] = value; return n }

func heldBy(reason remediations.Reason, message string) *ledger.Ledger {
	l := calmLedger()
	l.Status.Holds = map[remediations.Reason]string{reason: message}
	return l
}

// about sets what the ledger's hold concerns.
func about(l *ledger.Ledger, reason remediations.Reason, c remediations.Concern) {
	l.Status.Concerns = map[remediations.Reason]remediations.Concern{reason: c}
}

func (d *desk) statusOf(args ...string) (out inspect.Status) {
	d.t.Helper()
	code, stdout, stderr := d.run(append([]string{"status", "-o", "json"}, args...)...)
	require.Equal(d.t, cli.ExitOK, code, stderr)
	require.NoError(d.t, json.Unmarshal([]byte(stdout), &out))
	return out
}

// TestARowSaysWhatHoldsTheNodeNow, and never what held it once.
func TestARowSaysWhatHoldsTheNodeNow(t *testing.T) {
	pending := func(reason remediations.Reason, until time.Time) *corev1.Node {
		return under("n", record("aaaaaa", remediations.PhasePending, held(reason, "as it was recorded", until)))
	}
	unwritten := func(node string) *ledger.Ledger {
		l := calmLedger()
		l.Status.Unwritten = map[string]string{node: "Drydock's record cannot be written on the Node"}
		return l
	}
	later, before := now.Add(time.Minute), now.Add(-time.Second)
	blind, breaker, failing := calmLedger(), heldBy(remediations.ReasonFleetUnhealthy, "too many"), heldBy(remediations.ReasonPolicyFailing, "its last 3 repairs failed")
	blind.Status.Blind = "nobody shows the Watchdog"
	breaker.Status.Breakers = map[string]ledger.Breaker{"zone/a": {State: ledger.BreakerOpen, Since: now, Quiet: now}}
	failing.Status.Exhausted = map[string]int{"other": 3}
	inZone := func(zone string) *corev1.Node {
		return labelled(alerted("n", "node-not-ready"), corev1.LabelTopologyZone, zone)
	}
	atLimit := heldBy(remediations.ReasonAtLimit, "repairs under way in the cluster: 1 of at most 1")
	zoneAtLimit := heldBy(remediations.ReasonAtLimit, "repairs under way in zone fra1: 1 of at most 1; limits.concurrentPerZone is 1")
	about(zoneAtLimit, remediations.ReasonAtLimit, remediations.Concern{Zone: "fra1"})
	rack := heldBy(remediations.ReasonFleetUnhealthy, "the breaker of zone/r7 is open: 2 of 4 nodes are unhealthy")
	about(rack, remediations.ReasonFleetUnhealthy, remediations.Concern{Zone: "r7"})
	rack.Status.Breakers = map[string]ledger.Breaker{"zone/r7": {State: ledger.BreakerOpen, Since: now, Quiet: now}}
	rack.Status.Limits = remediations.Limits{ZoneLabel: "example.com/rack"}.Words()
	unwitnessed := heldBy(remediations.ReasonNotWitnessed, "policy gpu has no witness, and an alert alone repairs no node")
	about(unwitnessed, remediations.ReasonNotWitnessed, remediations.Concern{Policy: "gpu"})
	unwitnessed.Status.Holds[remediations.ReasonAtLimit] = atLimit.Status.Holds[remediations.ReasonAtLimit]
	for name, c := range map[string]struct {
		node   *corev1.Node
		ledger *ledger.Ledger
		want   remediations.Reason
	}{
		"waits at a limit":                  {alerted("n", "node-not-ready"), atLimit, remediations.ReasonAtLimit},
		"waits, nothing holds it":           {alerted("n", "node-not-ready"), calmLedger(), ""},
		"waits while blind":                 {alerted("n", "node-not-ready"), blind, remediations.ReasonBlind},
		"waits, and no write is taken":      {alerted("n", "node-not-ready"), unwritten("n"), remediations.ReasonWritesDenied},
		"another node takes no write":       {alerted("n", "node-not-ready"), unwritten("m"), ""},
		"waits behind its zone's breaker":   {inZone("a"), breaker, remediations.ReasonFleetUnhealthy},
		"another zone's breaker":            {inZone("b"), breaker, ""},
		"behind the breaker of its rack":    {labelled(inZone("a"), "example.com/rack", "r7"), rack, remediations.ReasonFleetUnhealthy},
		"another rack's breaker":            {labelled(inZone("r7"), "example.com/rack", "r8"), rack, ""},
		"its zone is at its limit":          {inZone("fra1"), zoneAtLimit, remediations.ReasonAtLimit},
		"another zone is at its limit":      {inZone("fra2"), zoneAtLimit, ""},
		"its policy has no witness":         {alerted("n", "gpu"), unwitnessed, remediations.ReasonNotWitnessed},
		"another policy has no witness":     {pending(remediations.ReasonSilenced, before), unwitnessed, remediations.ReasonAtLimit},
		"another policy is stopped":         {alerted("n", "node-not-ready"), failing, ""},
		"its policy is stopped":             {alerted("n", "other"), failing, remediations.ReasonPolicyFailing},
		"paused":                            {annotated(alerted("n", "node-not-ready"), remediations.PauseKey, "true disk"), atLimit, remediations.ReasonPaused},
		"its pause is over":                 {annotated(alerted("n", "node-not-ready"), remediations.PauseKey, before.Format(time.RFC3339)), atLimit, remediations.ReasonAtLimit},
		"excluded":                          {labelled(alerted("n", "node-not-ready"), remediations.ExcludeLabel, "true"), atLimit, remediations.ReasonExcluded},
		"silenced":                          {pending(remediations.ReasonSilenced, later), atLimit, remediations.ReasonSilenced},
		"its silence is over":               {pending(remediations.ReasonSilenced, before), atLimit, remediations.ReasonAtLimit},
		"the pause was taken away":          {pending(remediations.ReasonPaused, time.Time{}), calmLedger(), ""},
		"the exclusion was taken away":      {pending(remediations.ReasonExcluded, time.Time{}), calmLedger(), ""},
		"it was uncordoned":                 {pending(remediations.ReasonCordonedByOther, time.Time{}), calmLedger(), ""},
		"the other repair ended":            {pending(remediations.ReasonNodeUnderRepair, time.Time{}), calmLedger(), ""},
		"recorded at a limit that is free":  {pending(remediations.ReasonAtLimit, time.Time{}), calmLedger(), ""},
		"recorded at a limit that is taken": {pending(remediations.ReasonAtLimit, time.Time{}), atLimit, remediations.ReasonAtLimit},
		"it waits for approval":             {pending(remediations.ReasonAwaitingApproval, time.Time{}), calmLedger(), remediations.ReasonAwaitingApproval},
	} {
		t.Run(name, func(t *testing.T) {
			rows := newDesk(t, c.node, ledgerOf(c.ledger)).statusOf().Repairs
			require.Len(t, rows, 1)
			if c.want == "" {
				require.Nil(t, rows[0].Hold)
				return
			}
			require.NotNil(t, rows[0].Hold)
			require.Equal(t, c.want, rows[0].Hold.Reason)
			require.NotEmpty(t, rows[0].Hold.Message)
		})
	}
	leads := alerted("n", "mesh-leader-degraded")
	leads.Annotations[remediations.LocationKey] = record("eeeeee", remediations.PhasePending, func(r *remediations.Record) {
		r.Step.Name, r.Policy, r.Location = "promote-leader", "mesh-leader-degraded", "fra1"
	}).Encode()
	require.Len(t, newDesk(t, leads, ledgerOf(atLimit)).statusOf().Repairs, 1, "the alert of a repair does not wait beside it")

	cordoned := pending(remediations.ReasonCordonedByOther, time.Time{})
	cordoned.Spec.Unschedulable = true
	require.Equal(t, remediations.ReasonCordonedByOther, newDesk(t, cordoned, ledgerOf(atLimit)).statusOf().Repairs[0].Hold.Reason)
}

// TestAWaitingRowSaysHowTheLastRepairEnded: a repair for this firing of the alert was begun
// already.
func TestAWaitingRowSaysHowTheLastRepairEnded(t *testing.T) {
	t.Parallel()
	ended := func(at time.Time, outcome remediations.Outcome, would *remediations.Would) *corev1.Node {
		e := remediations.Entry{
			ID: "cccccc", Policy: "node-not-ready", Outcome: outcome, Steps: remediations.Attempts{}, Began: at, Ended: at, Cause: fingerprint, Would: would,
		}
		return annotated(alerted("n", "node-not-ready"), remediations.HistoryKey, historyOf(t, e))
	}
	during, before := now.Add(-2*time.Minute), now.Add(-time.Hour) // the alert has been firing since 20:50
	for name, c := range map[string]struct {
		node *corev1.Node
		want string
	}{
		"none was begun": {alerted("n", "node-not-ready"), "alert NodeNotReady; no repair has begun yet"},
		"observed": {
			ended(during, remediations.OutcomeObserved, &remediations.Would{Step: remediations.Attempt{Name: "reboot", Number: 1}, At: during}),
			"alert NodeNotReady; repair cccccc would have issued reboot:1 at 2026-11-20T21:03:00Z, " +
				"but policy node-not-ready only observed, and no repair has begun since",
		},
		"cancelled": {
			ended(during, remediations.OutcomeCancelled, nil),
			"alert NodeNotReady; repair cccccc ended as Cancelled at 2026-11-20T21:03:00Z, and no repair has begun since",
		},
		"of an earlier firing": {ended(before, remediations.OutcomeRecovered, nil), "alert NodeNotReady; no repair has begun yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stdout, stderr := newDesk(t, c.node, ledgerOf(calmLedger())).run("status", "-o", "wide")
			require.Empty(t, stderr)
			require.Contains(t, stdout, c.want+"\n")
		})
	}
}

// TestStatusShowsTheNodesThatWait: each node with an alert of a policy, and each that is not Ready.
// A node that is well is the control.
func TestStatusShowsTheNodesThatWait(t *testing.T) {
	l := heldBy(remediations.ReasonFleetUnhealthy, "3 of 6 nodes are unhealthy")
	l.Status.Breakers = map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen, Since: now.Add(-time.Minute), Unhealthy: 3, Nodes: 6, Quiet: now}}
	fleet := func(l *ledger.Ledger) []runtime.Object {
		return []runtime.Object{
			ledgerOf(l), is(node("node-0", nil), corev1.ConditionTrue), is(node("node-1", nil), corev1.ConditionUnknown),
			is(labelled(alerted("node-2", "node-not-ready"), "pool", "gpu"), corev1.ConditionTrue), exhausted("node-3", "cccccc", "p"), alerted("node-4", ""),
		}
	}
	d := newDesk(t, fleet(l)...)
	_, stdout, _ := d.run("status", "-o", "wide")
	golden(t, "status-waiting", stdout)
	names := func(s inspect.Status) (out []string) {
		for _, r := range s.Repairs {
			out = append(out, r.Node)
		}
		return out
	}
	require.Equal(t, []string{"node-3", "node-2", "node-1"}, names(d.statusOf()))
	require.Equal(t, []string{"node-3", "node-2", "node-1", "node-0", "node-4"}, names(d.statusOf("--all")))
	require.Equal(t, []string{"node-0"}, names(d.statusOf("node-0")))
	require.Equal(t, []string{"node-2"}, names(d.statusOf("-l", "pool=gpu")))
	require.Empty(t, d.statusOf("node-1").Ill, "of some nodes nobody can say which others are unhealthy")
	code, _, stderr := d.run("status", "node-9")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, `there is no node "node-9" in this cluster`)

	require.Equal(t, []string{"node-3", "node-2", "node-1"}, names(newDesk(t, fleet(calmLedger())...).statusOf()), "a node that is not Ready is shown, whether a breaker is open or not")
}

// TestPastTimesAreNotShownAsUntil: of the hold, of the phase, and of the breaker.
func TestPastTimesAreNotShownAsUntil(t *testing.T) {
	l := calmLedger()
	l.Status.Limits = map[string]string{"stormCooldown": "10m"}
	l.Status.Breakers = map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen, Since: now.Add(-time.Hour), Quiet: now.Add(-11 * time.Minute)}}
	objects := []runtime.Object{
		ledgerOf(l),
		under("node-1", record("aaaaaa", remediations.PhaseVerifying, func(r *remediations.Record) { r.Deadline = now.Add(-time.Second) })),
		under("node-2", record("bbbbbb", remediations.PhasePending, held(remediations.ReasonSilenced, "silenced", now.Add(-time.Second)))),
	}
	_, stdout, _ := newDesk(t, objects...).run("status", "-o", "wide")
	require.NotContains(t, stdout, "at the earliest")
	require.Contains(t, stdout, "too many nodes were last unhealthy at 2026-11-20T20:54:00Z, longer than limits.stormCooldown ago")
	require.NotContains(t, stdout, "2026-11-20T21:04:59Z")
	require.NotContains(t, stdout, "Silenced")

	l.Status.Breakers = map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen, Since: now.Add(-time.Hour), Quiet: now.Add(-9 * time.Minute)}}
	objects[0], objects[1] = ledgerOf(l), under("node-1", record("aaaaaa", remediations.PhaseVerifying, func(r *remediations.Record) { r.Deadline = now.Add(time.Second) }))
	_, stdout, _ = newDesk(t, objects...).run("status", "-o", "wide")
	require.Contains(t, stdout, "2026-11-20T21:06:00Z at the earliest", "the control")
	require.Contains(t, stdout, "2026-11-20T21:05:01Z", "the control")
}

var promise = regexp.MustCompile("`kubectl drydock status[^`]*`[^.;]*")

// TestTheRunbooksPromisesHold: what a runbook says that the status shows, it shows. A promise that
// is not listed here fails, and so does an entry that is not the promise of one place.
func TestTheRunbooksPromisesHold(t *testing.T) {
	l := heldBy(remediations.ReasonAtLimit, "repairs under way in the cluster: 1 of at most 1 (node-1)")
	l.Arrival = now.Add(-20 * time.Minute)
	l.Status.Blind = "at least three nodes do not renew their leases"
	l.Status.Unwritten = map[string]string{"node-4": "alerts cannot be written on the Node since 2026-11-20T20:55:00Z: metadata.annotations: Too long"}
	l.Status.Breakers = map[string]ledger.Breaker{"cluster": {State: ledger.BreakerOpen, Since: now.Add(-time.Minute), Unhealthy: 2, Nodes: 6, Quiet: now}}
	l.Status.SelfTest = selftest.Result{State: selftest.Unrouted, Message: "it is routed elsewhere", Since: now.Add(-2 * time.Minute)}
	l.Status.Exhausted = map[string]int{"node-not-ready": 3}
	l.Status.Admission = &ledger.Admission{Serving: now.Add(-time.Hour)}
	leader := node("node-8", map[string]string{remediations.LocationKey: record("eeeeee", remediations.PhasePending, held(remediations.ReasonLeaderHeld, "no node there can take its place", time.Time{}), func(r *remediations.Record) {
		r.Step.Name, r.Policy, r.Location = "promote-leader", "mesh-leader-degraded", "fra1"
	}).Encode()})
	leader.Labels[remediations.PhaseLabel] = "Pending"
	d := newDesk(t, ledgerOf(l), is(node("node-1", nil), corev1.ConditionFalse), alerted("node-2", "node-not-ready"), leader, under("node-9", record("ffffff", remediations.PhaseVerifying)))
	_, out, _ := d.run("status", "-o", "wide")
	blind := "Blind:    yes: at least three nodes do not renew their leases\n"
	shows := map[string][]string{
		"DrydockBlind: `kubectl drydock status` shows the cause in a sentence": {blind},
		"DrydockBlind: `kubectl drydock status` names":                         {blind},
		"DrydockBlind: `kubectl drydock status` name the nodes, each with the answer of the API server": {
			"Writes:   node-4 is not repaired: alerts cannot be written on the Node since 2026-11-20T20:55:00Z: metadata.annotations: Too long",
		},
		"DrydockBreakerOpen: `kubectl drydock status` shows how many nodes are unhealthy, and which ones": {
			"2 of 6 nodes are unhealthy", "unhealthy now: node-1 (not Ready), node-2 (alert NodeNotReady)",
		},
		"DrydockNotConnected: `kubectl drydock status` shows the state, and since when": {"SelfTest: unrouted since 2026-11-20T21:03:00Z"},
		"DrydockPolicyStopped: `kubectl drydock status` names the stopped policies":     {"Stopped:  policy node-not-ready: "},
		"DrydockRepairHeldTooLong: `kubectl drydock status -o wide` names the nodes, and gives the reason of each hold in a sentence": {
			"node-2 ", "no node there can take its place", "Held:     AtLimit: repairs under way in the cluster: 1 of at most 1",
		},
		"DrydockRepairInProgress: `kubectl drydock status -o wide` lists the repairs in progress": {"node-9 ", "Verifying   reboot:1"},
		"DrydockSelfTest: `kubectl drydock status` shows when the alert last arrived": {
			"last arrival 2026-11-20T20:45:00Z (20m ago)",
		},
		"DrydockWebhookFailing: `kubectl drydock status` says since when no request has come": {
			"Webhook:  no request has reached the webhook of the leading replica since its start at 2026-11-20T20:05:00Z",
		},
		"MeshLeaderDegraded: `kubectl drydock status`)":                  {"node-8 (leader of fra1)", "LeaderHeld"},
		"MeshMembersUnreachable: `kubectl drydock status`":               {"LeaderHeld", "no node there can take its place"},
		"SeiNodeSidecarReadinessLost: `kubectl drydock status` says why": {"Held:     AtLimit: "},
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "rules", "runbooks", "*.md"))
	require.NoError(t, err)
	found := map[string]int{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		for _, said := range promise.FindAllString(string(text), -1) {
			key := name + ": " + strings.Join(strings.Fields(said), " ")
			require.Contains(t, shows, key, "no entry of this test shows what the runbook promises")
			for _, want := range shows[key] {
				require.Contains(t, out, want, key)
			}
			found[key]++
		}
	}
	for key := range shows {
		require.Equal(t, 1, found[key], "%s: an entry is the promise of one place", key)
	}
}
