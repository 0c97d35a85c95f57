package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

var illLabels = map[string]string{"alertname": "NodeNotReady", "remediation": "node-not-ready", "node": "node-3", "severity": "critical"}

// illNode is node-3, which is not Ready, with its alert.
func illNode(change ...func(*corev1.Node)) *corev1.Node {
	n := aged("node-3", corev1.ConditionFalse)
	a := remediations.Alert{
		V: remediations.RecordVersion, Name: "NodeNotReady", Policy: "node-not-ready", Status: remediations.StatusFiring, StartsAt: now.Add(-12 * time.Minute),
		ReceivedAt: now.Add(-12 * time.Minute), Labels: map[string]string{"node": "node-3"}, Fingerprint: remediations.Fingerprint(illLabels),
	}
	n.Annotations[a.Key()] = a.Encode()
	for _, c := range change {
		c(n)
	}
	return n
}

// aged is a node of last month with that Ready condition.
func aged(name string, ready corev1.ConditionStatus) *corev1.Node {
	n := node(name, nil)
	n.CreationTimestamp, n.Spec.ProviderID = metav1.NewTime(now.Add(-30*24*time.Hour)), "civo://"+name
	n.Status.NodeInfo.BootID = "boot-" + name
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-13 * time.Minute))}}
	return n
}

// recorded puts the repair on the node.
func with(r *remediations.Record) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Annotations[remediations.NodeRepairKey], n.Labels[remediations.PhaseLabel] = r.Encode(), string(r.Phase)
	}
}

// illCause makes the record one of node-3's alert.
func illCause(r *remediations.Record) {
	r.Cause = remediations.Cause{Alert: remediations.Fingerprint(illLabels)}
	r.Step = remediations.StepRef{Name: "reboot", Attempt: 1}
	if r.Intent != nil {
		r.Intent.ID = r.ID + "-0-1"
	}
}

// setWith are managedFields of a manager that set the key, and changed the Node last at 20:55.
func setWith(manager, of, key string) []metav1.ManagedFieldsEntry {
	at := metav1.NewTime(now.Add(-10 * time.Minute))
	return []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at,
		FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{%q:{%q:{}}}}`, of, "f:"+key)),
	}}
}

const whyConfig = `
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: enforce
receiver: {tokenFile: /etc/drydock/token}
alertmanager: {urls: ["http://alertmanager-operated.monitoring:9093"]}
providers:
  civo: {clusterID: 9c89d8b9-463d-45f2-8928-455eb3f3726a, region: LON1, apiKeyFile: /etc/drydock/civo-api-key}
policies:
- name: node-not-ready
  plan: [{step: reboot, wait: 10m, attempts: 2}]
`

// whyTargets is that configuration with providers of the two other kinds of target.
var whyTargets = strings.Replace(whyConfig, "providers:\n", "providers:\n  sidecars: [{name: sei}]\n  kilo: {prometheus: [\"http://prometheus-operated.monitoring:9090\"]}\n", 1)

// whyNotReady is that configuration with the shipped policies alone.
var whyNotReady, _, _ = strings.Cut(whyConfig, "policies:\n")

// installedWith is the ConfigMap of the chart.
func installedWith(config string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "drydock", Labels: map[string]string{"app.kubernetes.io/name": "drydock"}},
		Data:       map[string]string{"drydock.yaml": config},
	}
}

// fleetOf is ten nodes with Drydock's configuration and a calm ledger; the node replaces the one of
// its name.
func fleetOf(ill *corev1.Node) []runtime.Object {
	out := []runtime.Object{ledgerOf(calmLedger()), installedWith(whyConfig), ill}
	for i := range 10 {
		name := fmt.Sprintf("node-%d", i)
		if name != ill.Name {
			out = append(out, aged(name, corev1.ConditionTrue))
		}
		seconds, renewed := int32(40), metav1.NewMicroTime(now.Add(-5*time.Second))
		out = append(out, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &renewed}})
	}
	return out
}

// alertmanagerWith has the node's alert, silenced or not, and the Watchdog.
func alertmanagerWith(t *testing.T, silences ...string) string {
	t.Helper()
	return alertmanagerOf(t, silences, nil)
}

// inhibitor is an alert about no node, ownInhibitor one about node-3. No policy takes them.
var (
	inhibitor    = map[string]string{"alertname": "RackPowerLost", "severity": "critical"}
	ownInhibitor = map[string]string{"alertname": "KubeNodeNotReady", "node": "node-3"}
)

// alertmanagerOf has the alerts of alertmanagerWith, and the alert inhibits, which inhibits the
// node's alert. If inhibits is nil, the alert inhibitor fires instead and inhibits nothing.
func alertmanagerOf(t *testing.T, silences []string, inhibits map[string]string) string {
	t.Helper()
	inhibitedBy, also := []string{}, inhibitor
	if inhibits != nil {
		inhibitedBy, also = append(inhibitedBy, remediations.Fingerprint(inhibits)), inhibits
	}
	alert := func(labels map[string]string, silencedBy, inhibitedBy []string) map[string]any {
		state := "active"
		if len(silencedBy)+len(inhibitedBy) > 0 {
			state = "suppressed"
		}
		return map[string]any{
			"labels": labels, "annotations": map[string]string{}, "startsAt": now.Add(-12 * time.Minute), "endsAt": now.Add(4 * time.Minute), "updatedAt": now.Add(-10 * time.Second),
			"fingerprint": remediations.Fingerprint(labels), "receivers": []any{map[string]string{"name": "drydock"}},
			"status": map[string]any{"state": state, "silencedBy": append([]string{}, silencedBy...), "inhibitedBy": append([]string{}, inhibitedBy...), "mutedBy": []string{}},
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = []any{}
		switch {
		case strings.HasSuffix(r.URL.Path, "/alerts"):
			answer = []any{
				alert(illLabels, silences, inhibitedBy), alert(map[string]string{"alertname": "Watchdog"}, nil, nil),
				alert(map[string]string{"alertname": "NodeDiskSlow", "node": "node-3"}, nil, nil), alert(also, nil, nil),
				alert(gatedLabels, silences, nil),
			}
		case strings.Contains(r.URL.Path, "/silence/"):
			answer = map[string]any{
				"id": filepath.Base(r.URL.Path), "createdBy": "alice", "comment": "swapping a disk", "startsAt": now.Add(-time.Hour), "endsAt": now.Add(55 * time.Minute), "updatedAt": now.Add(-time.Hour),
				"status": map[string]string{"state": "active"}, "matchers": []any{map[string]any{"name": "node", "value": "node-3", "isRegex": false, "isEqual": true}},
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const silenceID = "f1b1c9b0-0000-4000-8000-000000000001"

// observedAlready puts a would-be repair of node-3's alert into the history.
func observedAlready(t *testing.T) func(*corev1.Node) {
	t.Helper()
	at := now.Add(-11 * time.Minute)
	e := remediations.Entry{
		ID: "cccccc", Policy: "node-not-ready", Outcome: remediations.OutcomeObserved, Steps: remediations.Attempts{}, Began: at, Ended: now.Add(-time.Minute),
		Cause: remediations.Fingerprint(illLabels),
		Would: &remediations.Would{Step: remediations.Attempt{Name: "reboot", Number: 1}, At: at, Until: now.Add(-time.Minute), IllSince: now.Add(-12 * time.Minute)},
	}
	return func(n *corev1.Node) { n.Annotations[remediations.HistoryKey] = historyOf(t, e) }
}

var (
	gatedLabels  = map[string]string{"alertname": "SidecarNotReady", "remediation": "sidecar-not-ready", "pod": "rpc-0", "namespace": "sei"}
	leaderLabels = map[string]string{"alertname": "MeshLeaderDegraded", "remediation": "mesh-leader-degraded", "location": "fra1"}
)

// gated is node-3, which is well, with an alert about the sidecar of a pod there, and its record if
// there is one.
func gated(r *remediations.Record) *corev1.Node {
	n := alsoFiring(aged("node-3", corev1.ConditionTrue), gatedLabels)
	if r != nil {
		n.Annotations[remediations.SidecarKey(*r.Pod)] = r.Encode()
	}
	return n
}

// leading is node-3, which is well, with an alert about the location that it leads, and its record.
func leading(r *remediations.Record) *corev1.Node {
	n := alsoFiring(aged("node-3", corev1.ConditionTrue), leaderLabels)
	n.Labels[remediations.PhaseLabel], n.Annotations[remediations.LocationKey] = string(r.Phase), r.Encode()
	return n
}

// alsoFiring gives the node an alert of the policy that its labels name.
func alsoFiring(n *corev1.Node, labels map[string]string) *corev1.Node {
	a := remediations.Alert{
		V: remediations.RecordVersion, Name: labels["alertname"], Policy: labels["remediation"], Status: remediations.StatusFiring,
		StartsAt: now.Add(-12 * time.Minute), ReceivedAt: now.Add(-12 * time.Minute), Fingerprint: remediations.Fingerprint(labels), Labels: labels,
	}
	n.Annotations[a.Key()] = a.Encode()
	return n
}

// ofLeader makes the record one of the leader of that location.
func ofLeader(r *remediations.Record) {
	r.Policy, r.Location, r.Cause = "mesh-leader-degraded", "fra1", remediations.Cause{Alert: remediations.Fingerprint(leaderLabels)}
	r.Step = remediations.StepRef{Name: "promote-leader", Attempt: 1}
}

// ofSidecar makes the record one of that sidecar.
func ofSidecar(r *remediations.Record) {
	r.Policy, r.Pod = "sidecar-not-ready", &remediations.Pod{Namespace: "sei", Name: "rpc-0", UID: "uid-rpc-0"}
	r.Cause = remediations.Cause{Alert: remediations.Fingerprint(gatedLabels)}
	r.Step = remediations.StepRef{Name: "mark-ready", Attempt: 1}
	if r.Intent != nil {
		r.Done, r.Intent.ID = remediations.Attempts{{Name: "mark-ready", Number: 1}}, r.ID+"-0-1"
	}
}

// TestWhyNamesWhatHoldsTheNode by the guards' own words, with an exit code that a script can go by.
func TestWhyNamesWhatHoldsTheNode(t *testing.T) {
	t.Parallel()
	pending := func(change ...func(*remediations.Record)) func(*corev1.Node) {
		return with(record("bbbbbb", remediations.PhasePending, append([]func(*remediations.Record){illCause}, change...)...))
	}
	for name, c := range map[string]struct {
		node       *corev1.Node
		config     string // empty: whyConfig
		policy     string // added to the configuration of the policy
		silences   []string
		inhibits   map[string]string
		unasked    bool
		breakGlass string // why the ledger has break-glass on node-3 since 20:45
		code       int
		says       []string
		never      []string
	}{
		"observed already, still fires": {
			node: illNode(observedAlready(t)), policy: "  mode: observe\n", code: 3,
			says: []string{
				"node-3 is not repaired: Observing holds it.", "Why: repair cccccc would have issued reboot:1 at 2026-11-20T20:54:00Z",
				"To change that: set `mode: enforce` for policy node-not-ready in Drydock's configuration", "NodeNotReady", ": firing\n",
				"Last:     Observed 60s ago: would reboot:1 by policy node-not-ready (cccccc)\n",
			},
			never: []string{"no alert of a policy fires", "no step"},
		},
		"observed already, and the policy enforces now": {
			node: illNode(observedAlready(t)), code: 4, says: []string{"node-3 is about to be repaired."}, never: []string{"Observing holds"},
		},
		"policy off": {
			node: illNode(), policy: "  mode: \"off\"\n", code: 0,
			says:  []string{"Drydock does not repair node-3 now: policy node-not-ready is off.", ": firing\n"},
			never: []string{"no alert of a policy fires"},
		},
		"a sidecar's alert alone": {
			node: gated(nil), config: whyTargets, code: 4,
			says: []string{
				"node-3 (sei/rpc-0) is about to be repaired, unless Drydock finds a reason to hold the repair.\n",
				"Next:     mark-ready:1 by sei, once Drydock has checked the sidecar of sei/rpc-0: no guard that could be asked here holds the repair\n",
				"Silenced           passed     no silence and no mute time covers the alert\n",
				"SidecarUnknown     not seen   not asked from here: the sidecar of sei/rpc-0, which Drydock asks from inside the cluster\n",
				"SidecarHeld        not seen   not asked from here: ", "kubectl events -n sei --for pod/rpc-0\nObserving          passed ",
			},
			never: []string{"no alert of a policy fires", "HOLDS", "FleetUnhealthy"},
		},
		"a sidecar's alert is silenced": {
			node: gated(nil), config: whyTargets, silences: []string{silenceID}, code: 3,
			says: []string{
				"node-3 (sei/rpc-0) is not repaired: Silenced holds it, until 2026-11-20T22:00:00Z (in 55m).", "of alice (swapping a disk)",
				"To change that: amtool silence expire " + silenceID + " --alertmanager.url=http://127.0.0.1:", "Silenced           HOLDS ", "Next:     mark-ready:1 by sei, when nothing holds the repair",
			},
		},
		"a sidecar's node is paused": {
			node: func() *corev1.Node {
				n := gated(nil)
				n.Annotations[remediations.PauseKey] = "true ticket 12"
				return n
			}(), config: whyTargets, code: 3,
			says: []string{"node-3 (sei/rpc-0) is not repaired: Paused holds it.", "To change that: kubectl drydock resume node-3\n"},
		},
		"a sidecar without its provider": {
			node: gated(nil), unasked: true, code: 3,
			says: []string{"node-3 (sei/rpc-0) is not repaired: ProviderAbsent holds it.", "Why: no step of policy sidecar-not-ready can be carried out"},
		},
		"a sidecar's repair was cancelled": {
			node: func() *corev1.Node {
				n := gated(nil)
				n.Annotations[remediations.HistoryKey] = historyOf(t, remediations.Entry{
					ID: "dddddd", Target: strings.TrimPrefix(remediations.SidecarKey(remediations.Pod{Namespace: "sei", Name: "rpc-0"}), remediations.RepairPrefix), Policy: "sidecar-not-ready", Pod: "sei/rpc-0",
					Cause: remediations.Fingerprint(gatedLabels), Outcome: remediations.OutcomeCancelled, By: remediations.ByPerson, Steps: remediations.Attempts{}, Began: now.Add(-3 * time.Minute), Ended: now.Add(-2 * time.Minute),
				})
				return n
			}(), config: whyTargets, unasked: true, code: 3,
			says: []string{"Paused holds it.", "Why: repair dddddd of this alert was cancelled"}, never: []string{"To change that", "kubectl drydock repair"},
		},
		"a sidecar's repair is observed": {
			node: gated(record("eeeeee", remediations.PhasePending, ofSidecar,
				held(remediations.ReasonObserving, "would mark ready sei/rpc-0 now", time.Time{}))),
			config: whyTargets, policy: "- name: sidecar-not-ready\n  mode: observe\n  plan: [{step: mark-ready, provider: sei, wait: 10m}]\n", unasked: true, code: 3,
			says: []string{
				"node-3 (sei/rpc-0) is not repaired: Observing holds it.", "Why: would mark ready sei/rpc-0 now",
				"To change that: set `mode: enforce` for policy sidecar-not-ready in Drydock's configuration",
			},
		},
		"a sidecar's repair was observed, and the policy enforces now": {
			node: gated(record("eeeeee", remediations.PhasePending, ofSidecar,
				held(remediations.ReasonObserving, "would mark ready sei/rpc-0 now", time.Time{}))),
			config: whyTargets, unasked: true, code: 4, says: []string{"node-3 (sei/rpc-0) is about to be repaired, unless"}, never: []string{"Observing holds"},
		},
		"one sidecar between two attempts, and the alert of another": {
			node: gated(record("eeeeee", remediations.PhaseVerifying, ofSidecar, held(remediations.ReasonSidecarHeld, "SeiNode sei/rpc is paused", time.Time{}), func(r *remediations.Record) {
				r.Phase, r.Pod.Name, r.Cause.Alert = remediations.PhasePending, "rpc-1", fingerprint
			})),
			config: whyTargets, unasked: true, code: 3,
			says: []string{
				"node-3 (sei/rpc-1) is not repaired: SidecarHeld holds it.\nWhy: SeiNode sei/rpc is paused\n", "- the guards were not asked about this repair; its last recorded hold: SidecarHeld",
				"\n\nnode-3 (sei/rpc-0) is about to be repaired, unless Drydock finds a reason to hold the repair.\nNext:     mark-ready:1 by sei, once ",
			},
		},
		"the node and a sidecar on it": {
			node: alsoFiring(illNode(), gatedLabels), config: whyTargets, silences: []string{silenceID}, code: 3,
			says: []string{"node-3 is not repaired: Silenced holds it", "\n\nnode-3 (sei/rpc-0) is not repaired: Silenced holds it"},
		},
		"a leader is held by what Drydock saw": {
			node:   leading(record("eeeeee", remediations.PhasePending, ofLeader, held(remediations.ReasonLeaderHeld, "the members of location fra1 answer probes", time.Time{}))),
			config: whyTargets, unasked: true, code: 3,
			says: []string{
				"node-3 (leader of fra1) is not repaired: LeaderHeld holds it.", "Why: the members of location fra1 answer probes; Drydock recorded this at 2026-11-20T21:04:00Z",
				"NodeUnderRepair    passed     the node itself is not under repair", "AtLimit            passed     fewer repairs of this kind",
				"LeaderUnknown      not seen   not asked from here: Prometheus' series of the agents' probes of location fra1\nLeaderHeld         HOLDS ",
			},
			never: []string{"the guards were not asked about this repair"},
		},
		"a leader that nothing on record holds": {
			node: leading(record("eeeeee", remediations.PhasePending, ofLeader)), config: whyTargets, unasked: true, code: 4,
			says: []string{"node-3 (leader of fra1) is about to be repaired, unless", "Next:     promote-leader:1 by kilo, once Drydock has checked location fra1: "},
		},
		"a sidecar is under repair": {
			node: gated(record("eeeeee", remediations.PhaseVerifying, ofSidecar)), unasked: true, code: 4,
			says: []string{"node-3 (sei/rpc-0) is under repair: mark-ready:1, Verifying since 2026-11-20T21:02:00Z (3m ago)."},
		},
		"a sidecar ran out of attempts": {
			node: gated(record("eeeeee", remediations.PhaseExhausted, ofSidecar)), unasked: true, code: 3,
			says: []string{
				"node-3 (sei/rpc-0) is not repaired: Exhausted holds it.", "Why: repair eeeeee is exhausted; a person must check the node",
				"To change that: once the node is fixed: `kubectl drydock reset node-3`",
			},
			never: []string{"Next:", "needs no repair"},
		},
		"a sidecar ran out of attempts, and the node is about to be repaired": {
			node: illNode(func(n *corev1.Node) {
				r := record("eeeeee", remediations.PhaseExhausted, ofSidecar)
				n.Annotations[remediations.SidecarKey(*r.Pod)] = r.Encode()
			}), code: 4,
			says: []string{"node-3 is about to be repaired.", "Next:     reboot:1 by civo"}, never: []string{"Exhausted holds"},
		},
		"inhibited by another alert": {
			node: illNode(), inhibits: inhibitor, code: 3,
			says: []string{"node-3 is not repaired: Inhibited holds it.", "Why: inhibited by the alert RackPowerLost"}, never: []string{"about the same node"},
		},
		"inhibited by an alert about the node that no policy takes": {
			node: illNode(), inhibits: ownInhibitor, code: 3,
			says: []string{"Why: inhibited by the alert KubeNodeNotReady (" + remediations.Fingerprint(ownInhibitor) + ") about the same node"},
		},
		"silenced": {
			node: illNode(pending()), silences: []string{silenceID}, code: 3,
			says: []string{
				"node-3 is not repaired: Silenced holds it, until 2026-11-20T22:00:00Z (in 55m).", "of alice (swapping a disk)",
				"To change that: amtool silence expire " + silenceID, "Next:     reboot:1 by civo", "HOLDS",
			},
			never: []string{"Unseen"},
		},
		"nothing holds it": {
			node: illNode(), code: 4,
			says:  []string{"node-3 is about to be repaired.", "Next:     reboot:1 by civo", "1 of 10 nodes are unhealthy, limits.unhealthy is 20%", "Ready is False since", "no windows are configured"},
			never: []string{"HOLDS", "not seen", "RackPowerLost"}, // which Alertmanager has here, too
		},
		"Alertmanager was not asked": {
			node: illNode(), unasked: true, code: 4,
			says: []string{"not seen   Alertmanager was not asked; give its address with --alertmanager URL", "Unseen:   Alertmanager was not asked"},
		},
		"the leader wrote what Alertmanager said": {
			node: illNode(pending(held(remediations.ReasonSilenced, "covered by silence "+silenceID+" of alice (disk) until 2026-11-20T22:00:00Z", now.Add(55*time.Minute)))), unasked: true, code: 3,
			says: []string{
				"Silenced holds it, until 2026-11-20T22:00:00Z", "of alice (disk)", "Drydock recorded this at 2026-11-20T21:04:00Z",
				"To change that: amtool silence expire " + silenceID + "\n",
			},
		},
		"a person wrote what looks like a silence": {
			node: illNode(pending(held(remediations.ReasonSilenced, "covered by silence 8a1 of alice (silence "+silenceID+")", now.Add(55*time.Minute)))), unasked: true, code: 3,
			says: []string{"To change that: end the silence in Alertmanager: `amtool silence expire ID`\n"},
		},
		"muted by a time interval": {
			node: illNode(pending(held(remediations.ReasonSilenced, "muted by Alertmanager's time interval nights", now.Add(55*time.Minute)))), unasked: true, code: 3,
			says: []string{"To change that: change the mute time intervals of the route in Alertmanager's configuration\n"}, never: []string{"amtool"},
		},
		"what the leader wrote is over": {
			node: illNode(pending(held(remediations.ReasonSilenced, "covered by silence 8a1 of alice (disk)", now.Add(-time.Minute)))), unasked: true, code: 4,
			says: []string{"about to be repaired"}, never: []string{"alice"},
		},
		"paused": {
			node: illNode(func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true ticket 12" }), code: 3,
			says: []string{"Paused holds it.", "Why: paused (ticket 12); the Node does not show who set it; it does not expire", "To change that: kubectl drydock resume node-3"},
		},
		"paused by a program that the Node names, until then": {
			node: illNode(func(n *corev1.Node) {
				n.Annotations[remediations.PauseKey] = "2026-11-20T22:00:00Z"
				n.ManagedFields = setWith("kubectl-annotate", "f:annotations", remediations.PauseKey)
			}), code: 3,
			says: []string{
				"Paused holds it, until 2026-11-20T22:00:00Z (in 55m).",
				"Why: paused (no reason was given); set with kubectl-annotate, which last changed the Node at 2026-11-20T20:55:00Z (the API server's audit log names the person)\n",
			},
		},
		"break-glass on a node that is well": {
			node: func() *corev1.Node {
				n := aged("node-3", corev1.ConditionTrue)
				n.Annotations[remediations.BreakGlassKey] = "console is open"
				n.ManagedFields = setWith("kubectl-drydock", "f:annotations", remediations.BreakGlassKey)
				return n
			}(), unasked: true, code: 0,
			says: []string{
				"Drydock does not repair node-3 now: drydock.dev/break-glass is set (console is open); set with kubectl-drydock, which last changed the Node at 2026-11-20T20:55:00Z",
				"it expires 1h after Drydock first saw it; ", "To change that: kubectl drydock resume node-3\n",
			},
			never: []string{"needs no repair"},
		},
		"break-glass that Drydock counts": {
			node: func() *corev1.Node {
				n := aged("node-3", corev1.ConditionTrue)
				n.Annotations[remediations.BreakGlassKey] = "console is open"
				return n
			}(), breakGlass: "console is open", unasked: true, code: 0,
			says: []string{"drydock.dev/break-glass is set (console is open); the Node does not show who set it; ", ", until 2026-11-20T21:45:00Z"}, never: []string{"after Drydock first saw it"},
		},
		"paused while it is under repair": {
			node: illNode(with(record("aaaaaa", remediations.PhaseVerifying, illCause)), func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true ticket 12" }), code: 4,
			says: []string{"node-3 is under repair: ", "; nothing new starts on the node: paused (ticket 12); "},
		},
		"excluded": {
			node: illNode(func(n *corev1.Node) { n.Labels[remediations.ExcludeLabel] = "" }), code: 3,
			says: []string{"Excluded holds it.", "kubectl label node node-3 drydock.dev/exclude-"},
		},
		"the witness says that it is well": {
			node: illNode(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }), code: 3,
			says: []string{"NotWitnessed holds it.", "Ready is True since"},
		},
		"under repair": {
			node: illNode(with(record("aaaaaa", remediations.PhaseVerifying, illCause))), code: 4,
			says: []string{"node-3 is under repair: reboot:1, Verifying since 2026-11-20T21:02:00Z (3m ago).", "Next:     reboot:2 by civo, if the node is not healthy by 2026-11-20T21:12:00Z"},
		},
		"under repair, and its time is over": {
			node: illNode(with(record("aaaaaa", remediations.PhaseVerifying, illCause, func(r *remediations.Record) { r.Deadline = now.Add(-time.Minute) }))), code: 4,
			says: []string{"Next:     reboot:2 by civo, at Drydock's next pass: the node had time until 2026-11-20T21:04:00Z"}, never: []string{" by 2026-11-20T21:04"},
		},
		"ran out of steps": {
			node: illNode(with(record("aaaaaa", remediations.PhaseExhausted, illCause))), code: 3,
			says: []string{"Exhausted holds it.", "kubectl drydock reset node-3"},
		},
		"a record that nobody can read": {
			node: illNode(func(n *corev1.Node) { n.Annotations[remediations.NodeRepairKey] = "{" }), code: 3,
			says: []string{"RecordMalformed holds it.", "kubectl drydock reset node-3"},
		},
		"well": {
			node: aged("node-3", corev1.ConditionTrue), unasked: true, code: 0,
			says: []string{"node-3 needs no repair: no alert of a policy fires on it.", "Alert:    none"}, never: []string{"GUARD"},
		},
		"not Ready, and no alert yet": {
			node: aged("node-3", corev1.ConditionFalse), config: whyNotReady, unasked: true, code: 0,
			says: []string{
				"Drydock does not repair node-3 now: Ready is False since 2026-11-20T20:52:00Z, but no alert of a policy fires for the node; " +
					"Drydock waits for alert NodeNotReady of policy node-not-ready (the shipped rule waits 5 minutes); Alertmanager was not asked: give its address with --alertmanager URL.",
			},
			never: []string{"needs no repair"},
		},
		"not Ready, and Alertmanager has the alert": {
			node: aged("node-3", corev1.ConditionFalse), code: 0,
			says: []string{
				"Drydock does not repair node-3 now: Alertmanager has alert NodeNotReady for policy node-not-ready since 2026-11-20T20:53:00Z, but Drydock has not written it on the Node; Drydock writes it there when Alertmanager sends it, or at the next poll of Alertmanager.",
			},
			never: []string{"needs no repair"},
		},
		"not Ready, and Alertmanager keeps the alert back": {
			node: aged("node-3", corev1.ConditionFalse), inhibits: inhibitor, code: 0,
			says: []string{"but Drydock has not written it on the Node; Inhibited: inhibited by the alert RackPowerLost"}, never: []string{"needs no repair", "Drydock writes it there"},
		},
		"not Ready, and the policy is not there": {
			node: aged("node-3", corev1.ConditionFalse), policy: "  mode: \"off\"\n", code: 0,
			says: []string{
				"Ready is False since 2026-11-20T20:52:00Z", "no shipped rule makes an alert about this fault that a policy matches; ",
				"Alertmanager has other alerts about the node, but no policy matches them: NodeDiskSlow, NodeNotReady.",
			},
			never: []string{"needs no repair", "Drydock waits for"},
		},
		"a condition, and no alert yet": {
			node: func() *corev1.Node {
				n := aged("node-3", corev1.ConditionTrue)
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)), LastHeartbeatTime: metav1.NewTime(now)})
				return n
			}(), config: whyNotReady, unasked: true, code: 0,
			says: []string{"DiskPressure is True since 2026-11-20T21:04:00Z", "alert NodeDiskPressure of policy node-disk-pressure (the shipped rule waits 30 minutes)"}, never: []string{"needs no repair", "NodeNotReady"},
		},
		"repaired": {
			node: func() *corev1.Node {
				n := aged("node-3", corev1.ConditionTrue)
				n.Annotations[remediations.HistoryKey] = historyOf(t, remediations.Entry{ID: "cccccc", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Ended: now.Add(-time.Hour)})
				return n
			}(), unasked: true, code: 0, says: []string{"needs no repair", "Last:     Recovered 60m ago: reboot:1 by policy node-not-ready (cccccc)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"why", "node-3"}
			if !c.unasked {
				args = append(args, "--alertmanager", alertmanagerOf(t, c.silences, c.inhibits))
			}
			objects := fleetOf(c.node)
			objects[1] = installedWith(cmp.Or(c.config, whyConfig) + c.policy)
			if c.breakGlass != "" {
				l := calmLedger()
				l.Status.BreakGlass = map[string]ledger.BreakGlass{"node-3": {Since: now.Add(-20 * time.Minute), Why: c.breakGlass}}
				objects[0] = ledgerOf(l)
			}
			code, stdout, stderr := newDesk(t, objects...).run(args...)
			require.Empty(t, stderr)
			require.Equal(t, c.code, code, stdout)
			for _, text := range c.says {
				require.Contains(t, stdout, text)
			}
			for _, text := range c.never {
				require.NotContains(t, stdout, text)
			}
		})
	}
}

// TestThePageShowsWhatWhyPrints, line by line.
func TestThePageShowsWhatWhyPrints(t *testing.T) {
	t.Parallel()
	n := illNode(with(record("bbbbbb", remediations.PhasePending, illCause)))
	n.Annotations[remediations.HistoryKey] = historyOf(t, remediations.Entry{ID: "cccccc", Policy: "node-not-ready", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Ended: now.Add(-50 * time.Hour)})
	asked := alertmanagerWith(t, silenceID)
	code, stdout, _ := newDesk(t, fleetOf(n)...).run("why", "node-3", "--alertmanager", asked)
	require.Equal(t, 3, code)
	stdout = strings.ReplaceAll(stdout, asked, "http://localhost:9093")
	golden(t, "why", stdout)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "kubectl-drydock.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "```console\n$ kubectl drydock why node-3 --alertmanager http://localhost:9093\n"+stdout+"```\n")
}

// TestTheTerminalOfTheREADME is what docs/images/terminal.svg is drawn from: a repair in progress,
// and one that a silence holds.
func TestTheTerminalOfTheREADME(t *testing.T) {
	t.Parallel()
	held := illNode(with(record("bbbbbb", remediations.PhasePending, illCause, held(remediations.ReasonSilenced, "covered by silence "+silenceID, now.Add(55*time.Minute)))))
	repaired := aged("node-7", corev1.ConditionFalse)
	with(record("aaaaaa", remediations.PhaseVerifying))(repaired)
	known := calmLedger()
	known.Slots = []ledger.Slot{{Node: "node-7", Repair: "aaaaaa"}}
	fleet := slices.DeleteFunc(fleetOf(held)[1:], func(o runtime.Object) bool {
		n, is := o.(*corev1.Node)
		return is && n.Name == repaired.Name
	})
	d := newDesk(t, append(fleet, ledgerOf(known), repaired)...)
	var shown strings.Builder
	for _, args := range [][]string{{"status"}, {"why", "node-3", "--alertmanager", alertmanagerWith(t, silenceID)}} {
		_, stdout, stderr := d.run(args...)
		require.Empty(t, stderr)
		if len(args) > 1 {
			stdout = strings.ReplaceAll(stdout, args[len(args)-1], "http://localhost:9093")
			args[len(args)-1] = "http://localhost:9093"
			shown.WriteByte('\n')
		}
		shown.WriteString("$ kubectl drydock " + strings.Join(args, " ") + "\n" + stdout)
	}
	golden(t, "terminal", shown.String())
}

// TestWhyShowsAlertsThatNoPolicyTakes, and of policies that nearly take one.
func TestWhyShowsAlertsThatNoPolicyTakes(t *testing.T) {
	t.Parallel()
	_, stdout, _ := newDesk(t, fleetOf(illNode())...).run("why", "node-3", "--alertmanager", alertmanagerWith(t))
	require.Regexp(t, `Alert: +NodeDiskSlow \([0-9a-f]{16}\), no policy takes it, `, stdout)
	require.Contains(t, stdout, "policy gpu-node-not-ready does not take it: node node-3 does not match nodeSelector nvidia.com/gpu.count")
}

// TestWhySaysThatTheNodeCannotShowItsAlerts: "needs no repair" would be a claim without proof.
func TestWhySaysThatTheNodeCannotShowItsAlerts(t *testing.T) {
	t.Parallel()
	const full = "alerts cannot be written on the Node since 2026-11-20T20:55:00Z: metadata.annotations: Too long"
	const another = `another Drydock is in charge of the cluster: "a/drydock" holds Lease kube-system/drydock`
	const denied = "the API server refuses Drydock's own annotations and labels on Nodes: ValidatingAdmissionPolicy 'other' denied request"
	for name, tc := range map[string]struct {
		status func(*ledger.Status)
		says   string
	}{
		"its annotations are full":       {func(s *ledger.Status) { s.Unwritten = map[string]string{"node-3": full} }, "Drydock does not repair node-3 now: " + full + "."},
		"those of another node are full": {func(s *ledger.Status) { s.Unwritten = map[string]string{"node-4": full} }, "node-3 needs no repair"},
		"another Drydock is in charge":   {func(s *ledger.Status) { s.Aside = another }, "Drydock does not repair node-3 now: " + another + "."},
		"no Node takes a write":          {func(s *ledger.Status) { s.Denied = denied }, "Drydock does not repair node-3 now: " + denied + "."},
	} {
		l := calmLedger()
		tc.status(&l.Status)
		d := newDesk(t, append(fleetOf(aged("node-3", corev1.ConditionTrue))[1:], ledgerOf(l))...)
		_, stdout, _ := d.run("why", "node-3")
		require.Contains(t, stdout, tc.says, name)
		_, stdout, _ = d.run("status")
		for _, line := range l.Status.Unwritten {
			require.Contains(t, stdout, line, name)
		}
		if l.Status.Aside != "" {
			require.Contains(t, stdout, "Charge:   "+another, name)
			require.NotContains(t, stdout, "Blind:", "all else is from before")
		}
		if l.Status.Denied != "" {
			require.Contains(t, stdout, "Writes:   "+denied+"; no repair starts", name)
		}
	}
}

// TestWhySaysThatNoRecordCanBeWritten: a repair that is due does not begin on a Node that takes no
// write. Another Node's refusal is the control.
func TestWhySaysThatNoRecordCanBeWritten(t *testing.T) {
	t.Parallel()
	const full = "Drydock's record cannot be written on the Node since 2026-11-20T20:55:00Z: metadata.annotations: Too long"
	for node, says := range map[string]string{"node-3": "node-3 is not repaired: WritesDenied holds it.\nWhy: " + full, "node-4": "node-3 is about to be repaired"} {
		l := calmLedger()
		l.Status.Unwritten = map[string]string{node: full}
		_, stdout, _ := newDesk(t, append(fleetOf(illNode())[1:], ledgerOf(l))...).run("why", "node-3", "--alertmanager", alertmanagerWith(t))
		require.Contains(t, stdout, says)
	}
}

// TestWhyNamesTheDrydockInCharge where there is no ledger: a second installation that was never in
// charge has none.
func TestWhyNamesTheDrydockInCharge(t *testing.T) {
	t.Parallel()
	ill := aged("node-3", corev1.ConditionFalse)
	_, stdout, _ := newDesk(t, ill, charge("ops/drydock")).run("why", "node-3")
	require.Contains(t, stdout, "It is unknown whether Drydock repairs node-3: the Drydock in namespace drydock is not in charge of the cluster; the one in namespace ops is: use -n ops")
	_, stdout, _ = newDesk(t, ill, charge("drydock/drydock")).run("why", "node-3")
	require.NotContains(t, stdout, "in charge")
}

// TestStatusSaysSinceWhenNoAdmissionRequestHasCome to a replica that has a webhook.
func TestStatusSaysSinceWhenNoAdmissionRequestHasCome(t *testing.T) {
	t.Parallel()
	const firewall = "if nodes were cordoned since then, a firewall may block the API server from the port of config.webhook.listen (default 9443): docs/reference/admission.md\n"
	for says, a := range map[string]*ledger.Admission{
		"Webhook:  no request has reached the webhook of the leading replica since its start at 2026-11-20T20:05:00Z (60m ago); " + firewall: {Serving: now.Add(-time.Hour)},
		"Webhook:  the last request reached the webhook of the leading replica at 2026-11-20T21:00:00Z (5m ago)\n":                           {Serving: now.Add(-time.Hour), Last: now.Add(-5 * time.Minute)},
		"": nil,
	} {
		l := calmLedger()
		l.Status.Admission = a
		_, stdout, _ := newDesk(t, append(fleetOf(illNode())[1:], ledgerOf(l))...).run("status")
		require.Contains(t, stdout, says)
		require.Equal(t, a != nil, strings.Contains(stdout, "Webhook:"))
	}
}

// TestWhyInJSONHasWhatTheTextHas.
func TestWhyInJSONHasWhatTheTextHas(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := newDesk(t, fleetOf(illNode())...).run("why", "node-3", "-o", "json", "--alertmanager", alertmanagerWith(t, silenceID))
	require.Equal(t, 3, code, stderr)
	var answer inspect.Why
	require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
	require.Equal(t, inspect.Held, answer.State)
	require.Equal(t, remediations.ReasonSilenced, answer.Hold.Reason)
	require.Len(t, answer.Guards, len(lifecycle.Guards()))
	require.Equal(t, "reboot:1", answer.Next)
	require.Equal(t, "civo", answer.Provider)
	require.Empty(t, answer.Unseen)
}

// forbid has the API server refuse these requests.
func (d *desk) forbid(verb, resource string) {
	d.cluster.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	})
}

// TestWhatMayNotBeReadIsNotSeen, and never passed. With the right it is seen.
func TestWhatMayNotBeReadIsNotSeen(t *testing.T) {
	t.Parallel()
	for resource, c := range map[string]struct {
		unseen  string
		reasons []remediations.Reason
	}{
		"leases": {"the leases of the nodes: ", []remediations.Reason{remediations.ReasonBlind}},
		"nodes":  {"the other nodes: ", []remediations.Reason{remediations.ReasonFleetUnhealthy, remediations.ReasonAtLimit, remediations.ReasonNodeUnderRepair, remediations.ReasonControlPlaneBusy}},
	} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, fleetOf(illNode())...)
			at := alertmanagerWith(t)
			unseen := func() (out []remediations.Reason, answer inspect.Why) {
				_, stdout, stderr := d.run("why", "node-3", "-o", "json", "--alertmanager", at)
				require.Empty(t, stderr)
				require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
				for _, g := range answer.Guards {
					if g.Standing == lifecycle.GuardNotSeen {
						out = append(out, g.Reason)
					}
				}
				return out, answer
			}
			before, _ := unseen()
			require.Empty(t, before)
			d.forbid("list", resource)
			after, answer := unseen()
			require.Subset(t, after, c.reasons)
			require.Len(t, answer.Unseen, 1)
			require.Contains(t, answer.Unseen[0], c.unseen)
		})
	}
}

// TestWithoutTheConfigurationTheNodeAndTheLedgerSpeak: nothing is decided by a configuration that
// is another one.
func TestWithoutTheConfigurationTheNodeAndTheLedgerSpeak(t *testing.T) {
	t.Parallel()
	n := illNode(func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true ticket 12" })
	d := newDesk(t, ledgerOf(calmLedger()), n)
	code, stdout, stderr := d.run("why", "node-3")
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stdout, "Paused holds it.")
	require.Contains(t, stdout, "Unseen:   Drydock's configuration: no ConfigMap of Drydock's chart has the key drydock.yaml; give it with --config FILE")
	require.NotContains(t, stdout, "GUARD")
	_, stdout, _ = newDesk(t, ledgerOf(calmLedger()), illNode()).run("why", "node-3")
	require.True(t, strings.HasPrefix(stdout, "It is unknown whether Drydock repairs node-3: alert NodeNotReady of policy node-not-ready is firing, read from the Node; Drydock's configuration could not be read.\n"), stdout)

	file := filepath.Join(t.TempDir(), "drydock.yaml")
	require.NoError(t, os.WriteFile(file, []byte(whyConfig), 0o600))
	code, stdout, stderr = d.run("why", "node-3", "--config", file)
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stdout, "GUARD")
	require.NotContains(t, stdout, "Drydock's configuration:")

	code, _, stderr = d.run("why", "node-3", "--config", file+".missing")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "cannot be read")
	code, _, stderr = d.run("why", "node-77")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, `there is no node "node-77" in this cluster`)
}

// TestWhatMayNotBeReadIsNotDecided: no answer claims what rests on the ledger, the configuration or
// the Lease for who may not read them. With the rights it is decided, which is the control. What
// the Node itself says holds all the same.
func TestWhatMayNotBeReadIsNotDecided(t *testing.T) {
	t.Parallel()
	const firing = "alert NodeNotReady of policy node-not-ready is firing, read from the Node; "
	paused := illNode(func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true ticket 12" })
	for name, c := range map[string]struct {
		node      *corev1.Node
		forbidden []string
		code      int
		says      string
	}{
		"the control":            {illNode(), nil, 4, "node-3 is about to be repaired."},
		"nothing":                {illNode(), []string{"configmaps", "leases"}, 5, firing + "the ledger, Drydock's configuration and the Lease of the leading replica could not be read.\n"},
		"no ConfigMap":           {illNode(), []string{"configmaps"}, 5, firing + "the ledger and Drydock's configuration could not be read.\n"},
		"no ConfigMap, no alert": {aged("node-3", corev1.ConditionTrue), []string{"configmaps"}, 5, "node-3: the ledger could not be read.\n"},
		"no ConfigMap, a fault":  {aged("node-3", corev1.ConditionFalse), []string{"configmaps"}, 5, "node-3: Ready is False since 2026-11-20T20:52:00Z, but no alert of a policy fires for the node; "},
		"paused":                 {paused, []string{"configmaps", "leases"}, 3, "node-3 is not repaired: Paused holds it."},
		"under repair":           {illNode(with(record("aaaaaa", remediations.PhaseVerifying, illCause))), []string{"configmaps", "leases"}, 4, "node-3 is under repair: "},
	} {
		d := newDesk(t, fleetOf(c.node)...)
		for _, resource := range c.forbidden {
			d.forbid("get", resource)
			d.forbid("list", resource)
		}
		code, stdout, stderr := d.run("why", "node-3")
		require.Empty(t, stderr, name)
		require.Equal(t, c.code, code, "%s: %s", name, stdout)
		require.Contains(t, stdout, c.says, name)
		require.Equal(t, c.code == 5, strings.HasPrefix(stdout, "It is unknown whether Drydock repairs node-3: "), "%s: %s", name, stdout)
		require.Equal(t, c.code == 5, strings.Contains(stdout, "To change that: ask an administrator for the rights named below: to get and list ConfigMaps and Leases"), "%s: %s", name, stdout)
	}
}

// TestWhatIsReadNamesItsCluster: the current context may be another one than a person thinks.
func TestWhatIsReadNamesItsCluster(t *testing.T) {
	t.Parallel()
	n := illNode()
	n.Annotations[remediations.HistoryKey] = historyOf(t, remediations.Entry{ID: "cccccc", Policy: "p", Outcome: remediations.OutcomeRecovered, Steps: remediations.Attempts{{Name: "reboot", Number: 1}}, Ended: now.Add(-time.Hour)})
	d := newDesk(t, fleetOf(n)...)
	connect := d.plugin.connect
	d.plugin.connect = func() (inspect.Client, error) {
		c, err := connect()
		c.Cluster = inspect.NewCluster("staging", "https://10.2.0.1:6443")
		return c, err
	}
	for _, command := range []string{"why node-3", "status", "history node-3", "cleanup"} {
		_, stdout, _ := d.run(strings.Fields(command)...)
		require.True(t, strings.HasPrefix(stdout, "Cluster:  staging (https://10.2.0.1:6443)\n"), "%s: %s", command, stdout)
	}
	_, stdout, _ := d.run("report")
	require.Contains(t, stdout, "Cluster staging (https://10.2.0.1:6443): ")
	_, _, stderr := d.run("history", "node-1")
	require.Equal(t, "Cluster staging (https://10.2.0.1:6443): No repair of node-1 has ended yet.\n", stderr)
	for _, command := range []string{"why node-3", "status", "history node-3"} {
		_, stdout, _ := d.run(append(strings.Fields(command), "-o", "json")...)
		var of struct{ Cluster inspect.Cluster }
		require.NoError(t, json.Unmarshal([]byte(stdout), &of))
		require.Equal(t, inspect.Cluster{Context: "staging", Server: "https://10.2.0.1:6443"}, of.Cluster, command)
	}
}

// TestWhyShowsAFaultWithoutTheConfiguration, although the awaited alert is unknown then. A node
// that is Ready is the control.
func TestWhyShowsAFaultWithoutTheConfiguration(t *testing.T) {
	t.Parallel()
	for ready, want := range map[corev1.ConditionStatus]string{
		corev1.ConditionUnknown: "Drydock does not repair node-3 now: Ready is Unknown since 2026-11-20T20:52:00Z, but no alert of a policy fires for the node; " +
			"without Drydock's configuration it is unknown which alert Drydock waits for.\n",
		corev1.ConditionTrue: "node-3 needs no repair: no alert of a policy fires on it.\n",
	} {
		_, stdout, _ := newDesk(t, ledgerOf(calmLedger()), aged("node-3", ready)).run("why", "node-3")
		require.True(t, strings.HasPrefix(stdout, want), stdout)
	}
}
