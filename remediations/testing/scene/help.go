package scene

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// OneAction returns a function that runs one of the actions, chosen at random.
func OneAction(actions map[string]func(*rapid.T)) func(*rapid.T) {
	var names []string
	for k := range actions {
		names = append(names, k)
	}
	return func(t *rapid.T) { actions[rapid.SampledFrom(slices.Sorted(slices.Values(names))).Draw(t, "what")](t) }
}

// ToggleLabel removes the label if the Node has it, and sets it otherwise.
func ToggleLabel(n *corev1.Node, key string) {
	if _, ok := n.Labels[key]; ok {
		delete(n.Labels, key)
	} else {
		n.Labels[key] = ""
	}
}

// RecordIDs returns the id of the record's intent as a list, or nil without an intent.
func RecordIDs(r *remediations.Record) []string {
	if r == nil || r.Intent == nil {
		return nil
	}
	return []string{r.Intent.ID}
}

// LimitsAlone returns a configuration that has only limits.
func LimitsAlone() *remediations.Config {
	return &remediations.Config{Limits: remediations.Limits{
		Concurrent: remediations.Quantity{Value: 2}, ConcurrentPerZone: remediations.Quantity{Value: 9}, ConcurrentPerPool: remediations.Quantity{Value: 9},
		ZoneLabel: "zone", PoolLabels: []string{"pool", "old-pool"}, Unhealthy: remediations.Quantity{Value: 20, Percent: true},
		StormCooldown: 10 * time.Minute, StartupGrace: 10 * time.Minute,
	}}
}

// Quiet returns false: no alert about the node fires.
func Quiet(string) bool { return false }

// DesignOrder are the reasons in the required order of their guards.
var DesignOrder = []remediations.Reason{
	remediations.ReasonExcluded, remediations.ReasonPaused, remediations.ReasonNodeLeaving, remediations.ReasonCordonedByOther, remediations.ReasonAlertUnconfirmed, remediations.ReasonBlind, remediations.ReasonWritesDenied, remediations.ReasonStoreWentBack, remediations.ReasonSilenced, remediations.ReasonInhibited, remediations.ReasonAlertResolved, remediations.ReasonNotWitnessed,
	remediations.ReasonTooYoung, remediations.ReasonFleetUnhealthy, remediations.ReasonOutsideWindow, remediations.ReasonNodeUnderRepair, remediations.ReasonCooldown, remediations.ReasonRepairsSpent, remediations.ReasonPolicyFailing,
	remediations.ReasonControlPlaneBusy, remediations.ReasonClusterWide, remediations.ReasonAtLimit, remediations.ReasonCommonCause, remediations.ReasonAwaitingApproval, remediations.ReasonObserving,
}

// WithoutEachReason runs a subtest for each reason, with the guards of that reason removed.
func WithoutEachReason(t *testing.T, then func(t *testing.T, gone remediations.Reason, left []lifecycle.Guard)) {
	for _, gone := range DesignOrder {
		t.Run(string(gone), func(t *testing.T) {
			then(t, gone, slices.DeleteFunc(lifecycle.Guards(), func(g lifecycle.Guard) bool { return g.Reason == gone }))
		})
	}
}

// Acting returns a node whose repair is Acting. Its intent has the id r1-0-1.
func Acting() *corev1.Node {
	n := Bare("n1")
	r := remediations.Record{V: 1, ID: "r1", Policy: "p", Cause: remediations.Cause{Alert: "a"}, Phase: remediations.PhaseActing, Step: remediations.StepRef{Name: "reboot", Attempt: 1},
		Began: Noon, Since: Noon, Deadline: Noon, Intent: &remediations.Intent{ID: "r1-0-1", At: Noon}}
	n.Annotations[remediations.NodeRepairKey], n.Labels[remediations.PhaseLabel] = r.Encode(), string(remediations.PhaseActing)
	return n
}

// Serving returns a provider that reboots Nodes. scheme is the prefix of their provider IDs, and
// selector, if set, their labels.
func Serving(name, scheme, selector string) remediations.Provider {
	p := remediations.Provider{Name: name, Scheme: scheme, Steps: []string{"reboot"}}
	if selector != "" {
		p.NodeSelector, _ = k8slabels.Parse(selector)
	}
	return p
}
