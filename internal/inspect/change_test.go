package inspect

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
)

// wait stands for a hold that no command of a person ends at once.
const wait = ""

// waysOut are what a person may do about each hold. A new reason needs an entry.
var waysOut = map[remediations.Reason]string{
	NoLeader:                               "kubectl get pods -n drydock -l app.kubernetes.io/name=drydock",
	remediations.ReasonRecordMalformed:     "kubectl drydock reset node-3",
	remediations.ReasonExcluded:            "kubectl label node node-3 drydock.dev/exclude-",
	remediations.ReasonPaused:              "kubectl drydock resume node-3",
	remediations.ReasonNodeLeaving:         wait,
	remediations.ReasonCordonedByOther:     "kubectl uncordon node-3",
	remediations.ReasonAlertUnconfirmed:    wait,
	remediations.ReasonBlind:               "fix the fault that the message names; Drydock continues by itself",
	remediations.ReasonWritesDenied:        "allow these writes of Drydock's ServiceAccount in the policy, webhook or role that the message names; Drydock tries again by itself",
	remediations.ReasonStoreWentBack:       wait,
	remediations.ReasonSilenced:            "end the silence in Alertmanager: `amtool silence expire ID`",
	remediations.ReasonInhibited:           wait,
	remediations.ReasonAlertResolved:       wait,
	remediations.ReasonNotWitnessed:        wait,
	remediations.ReasonTooYoung:            wait,
	remediations.ReasonFleetUnhealthy:      "find what the unhealthy nodes have in common; to list them: `kubectl drydock status`",
	remediations.ReasonOutsideWindow:       wait,
	remediations.ReasonNodeUnderRepair:     "wait for the other repair (to see it: `kubectl drydock status`), or end it: `kubectl drydock cancel NODE`",
	remediations.ReasonCooldown:            "see what was tried: `kubectl drydock history node-3 -o wide`",
	remediations.ReasonRepairsSpent:        "see what was tried: `kubectl drydock history node-3 -o wide`",
	remediations.ReasonPolicyFailing:       "find and fix the cause, then: `kubectl drydock reset --policy node-not-ready`",
	remediations.ReasonControlPlaneBusy:    "wait for the repairs in progress (to list them: `kubectl drydock status`), or end one: `kubectl drydock cancel NODE`",
	remediations.ReasonClusterWide:         wait,
	remediations.ReasonAtLimit:             "wait for the repairs in progress (to list them: `kubectl drydock status`), or end one: `kubectl drydock cancel NODE`",
	remediations.ReasonCommonCause:         "find what the unhealthy nodes have in common; to see the node that is repaired first: `kubectl drydock status`",
	remediations.ReasonAwaitingApproval:    "kubectl drydock approve node-3",
	remediations.ReasonObserving:           "set `mode: enforce` for policy node-not-ready in Drydock's configuration",
	remediations.ReasonCallWithheld:        wait,
	remediations.ReasonProviderAbsent:      "configure a provider for the step; to see which one is missing: `drydock check FILE`",
	remediations.ReasonProviderUnreachable: "fix the fault that the message names; Drydock asks the provider again by itself",
	remediations.ReasonSidecarHeld:         wait,
	remediations.ReasonSidecarUnknown:      wait,
	remediations.ReasonLeaderHeld:          wait,
	remediations.ReasonLeaderUnknown:       wait,
	remediations.ReasonAPIServerUnknown:    wait,
}

// TestEachHoldNamesItsWayOut: each reason has the command that changes it, or is known to need
// none.
func TestEachHoldNamesItsWayOut(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, append(slices.Clone(remediations.Reasons), NoLeader), slices.Collect(maps.Keys(waysOut)))
	for reason, want := range waysOut {
		s := onNode(map[string]string{remediations.PauseKey: "true"})
		require.Equal(t, want, s.change(&Hold{Reason: reason}, "node-not-ready"), reason)
	}
}

// TestTheWayOutDependsOnTheCause where one reason has several.
func TestTheWayOutDependsOnTheCause(t *testing.T) {
	t.Parallel()
	s := onNode(nil)
	require.Contains(t, s.change(&Hold{Reason: remediations.ReasonBlind, Message: "no Alertmanager has shown the Watchdog alert yet"}, ""), "make sure that the Watchdog alert fires")
	require.Contains(t, s.change(&Hold{Reason: remediations.ReasonWritesDenied, Message: "metadata.annotations: Too long"}, ""), "remove large annotations")
	large := onNode(map[string]string{"example.com/inventory": strings.Repeat("x", 200<<10), remediations.HistoryKey: strings.Repeat("x", 201<<10), "a": "b"})
	require.Contains(t, large.change(&Hold{Reason: remediations.ReasonWritesDenied, Message: "metadata.annotations: Too long"}, ""),
		"the largest is example.com/inventory with 200 KiB: `kubectl annotate node ")
	for message, want := range map[string]string{
		"no step of policy node-not-ready can be carried out by this installation":                                                                      "configure a provider for the step; to see which one is missing: `drydock check FILE`",
		`no provider serves Node n1 for the step reboot: its spec.providerID is "civo://n1"`:                                                            "configure a provider for the step; to see which one is missing: `drydock check FILE`",
		"the network does not answer: nothing came from Civo at api.civo.com within 10s; check the network between Drydock and Civo, and Civo's status": "fix the fault that the message names; Drydock asks the provider again by itself",
		"Civo refuses the API key": "fix the fault that the message names; Drydock asks the provider again by itself",
	} {
		require.Equal(t, want, s.change(&Hold{Reason: remediations.ReasonProviderAbsent, Message: message}, ""), message)
	}
}

// TestThePauseHasTheCommandThatEndsIt: the command takes away what a person wrote, or asks for what
// they cancelled.
func TestThePauseHasTheCommandThatEndsIt(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		remediations.PauseKey:      "kubectl drydock resume node-3",
		remediations.BreakGlassKey: "kubectl drydock resume node-3",
		remediations.CancelKey:     "kubectl annotate node node-3 drydock.dev/cancel-",
		"example.com/other":        "kubectl drydock repair node-3 --policy node-not-ready",
	} {
		s := onNode(map[string]string{key: "aaaaaa"})
		require.Equal(t, want, s.change(&Hold{Reason: remediations.ReasonPaused}, "node-not-ready"), key)
	}
}

// onNode is the observation of node-3 with these annotations.
func onNode(annotations map[string]string) *Observation {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3", Annotations: annotations}}
	return &Observation{Node: n, leader: Leadership{Lease: "drydock/drydock"}}
}
