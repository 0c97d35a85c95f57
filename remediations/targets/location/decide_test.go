package location_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestDecideLeaderGoldens compares every kind of decision about the leader of a location with its
// golden file.
func TestDecideLeaderGoldens(t *testing.T) {
	scene.Pin(t, "decide", scene.Golden.LocationState, location.Decide, scene.Render, func(t *testing.T, _ *location.State, d lifecycle.Decision) { scene.Readable(t, LocationKey, d) })
}

// bindsLeaders are the guards that hold the move of a leader. The others are about the machine, or
// the nodes' limits.
var bindsLeaders = map[Reason]bool{
	ReasonExcluded: true, ReasonPaused: true, ReasonNodeLeaving: true, ReasonCordonedByOther: true, ReasonAlertUnconfirmed: true, ReasonBlind: true, ReasonWritesDenied: true, ReasonStoreWentBack: true, ReasonSilenced: true,
	ReasonInhibited: true, ReasonAlertResolved: true, ReasonTooYoung: true, ReasonOutsideWindow: true, ReasonNodeUnderRepair: true, ReasonCooldown: true, ReasonPolicyFailing: true,
	ReasonAtLimit: true, ReasonAwaitingApproval: true, ReasonObserving: true,
}

// TestGuardsThatBindLeaders removes each guard in turn. Without a guard that binds leaders, the
// golden of its name must differ. Without any other guard, no golden differs.
func TestGuardsThatBindLeaders(t *testing.T) {
	scene.MissedWithoutEachReason(t, scene.Golden.LocationState, func(s *location.State, left []lifecycle.Guard) string {
		s.Guards = left
		return scene.Render(t, location.Decide(s, scene.Noon))
	}, func(t *testing.T, gone Reason, missed []string) {
		if bindsLeaders[gone] {
			require.Contains(t, missed, "held-"+string(gone))
		} else {
			require.Empty(t, missed)
		}
	})
}

// everythingWrongWithALeader is a leader that each guard for leaders holds, and the observation of
// its location, too.
const everythingWrongWithALeader = `
policy: {mode: observe, for: 30m, approval: true}
windows: ["02:00-04:00"]
node:
  labels: {drydock.dev/exclude: ""}
  annotations: {drydock.dev/pause: "true"}
  taints: [ToBeDeletedByClusterAutoscaler]
  cordoned: true
record: {v: 1, id: r9, policy: node-not-ready, cause: {alert: "aa"}, phase: Verifying, step: {index: 0, name: reboot, attempt: 1},
  began: "<now-1m>", since: "<now-1m>", deadline: "<now+1m>", intent: {id: r9-0-1, at: "<now-1m>"}}
denied: nodes are forbidden
word: {watchdogMisses: 3, replicas: [{alert: silenced, err: "down"}, {alert: inhibited, err: "down"}]}
moved: {r0: 5m}
ledger: {exhausted: {mesh-leader-degraded: 3}, wentBack: 10m}
elsewhere: [{node: n5}]
sight: {unknown: "no probes", reached: true, held: "granularity is full", candidates: []}
`

// TestEachHoldOfALeaderSpeaksBeforeThoseBehindIt checks the order of the holds. The observation of
// a location comes after people's marks and the Alertmanagers' answers. It comes before Observing,
// which only holds a step that would otherwise be issued.
func TestEachHoldOfALeaderSpeaksBeforeThoseBehindIt(t *testing.T) {
	sc := scene.ReadLocation(t, everythingWrongWithALeader)
	steps := []struct {
		reason Reason
		remedy func()
	}{
		{ReasonExcluded, func() { delete(sc.Node.Labels, ExcludeLabel) }},
		{ReasonPaused, func() { delete(sc.Node.Annotations, PauseKey) }},
		{ReasonNodeLeaving, func() { sc.Node.Taints = nil }},
		{ReasonCordonedByOther, func() { sc.Policy.RepairCordoned = true }},
		{ReasonAlertUnconfirmed, func() { sc.Word.Replicas[0].Err, sc.Word.Replicas[1].Err = "", "" }},
		{ReasonBlind, func() { sc.Word.WatchdogMisses = 0 }},
		{ReasonWritesDenied, func() { sc.Denied = "" }},
		{ReasonStoreWentBack, func() { sc.Ledger.WentBack = "" }},
		{ReasonSilenced, func() { sc.Word.Replicas[0].Alert = "active" }},
		{ReasonInhibited, func() { sc.Word.Replicas[1].Alert = "active" }},
		{ReasonTooYoung, func() { sc.Policy.For = "1m" }},
		{ReasonOutsideWindow, func() { sc.Windows = nil }},
		{ReasonNodeUnderRepair, func() { sc.Record = nil }},
		{ReasonCooldown, func() { sc.Moved = nil }},
		{ReasonPolicyFailing, func() { sc.Ledger.Exhausted = nil }},
		{ReasonAtLimit, func() { sc.Elsewhere = nil }},
		{ReasonAwaitingApproval, func() { sc.Policy.Approval = false }},
		{ReasonLeaderUnknown, func() { sc.Sight.Unknown = "" }},
		{ReasonLeaderHeld, func() { sc.Sight.Reached = false }},
		{ReasonLeaderHeld, func() { sc.Sight.Held = "" }},
		{ReasonLeaderHeld, func() { sc.Sight.Candidates = nil; sc.Busy = []string{"n2", "n3"} }},
		{ReasonNodeUnderRepair, func() { sc.Busy = nil }},
		{ReasonObserving, func() { sc.Policy.Mode = ModeEnforce }},
	}
	for _, step := range steps {
		d := location.Decide(sc.LocationState(t), scene.Noon)
		require.Equal(t, lifecycle.VerbHold, d.Verb, "%s: %s", step.reason, d.Message)
		require.Equal(t, step.reason, d.Reason, d.Message)
		step.remedy()
	}
	require.Equal(t, lifecycle.VerbIssue, location.Decide(sc.LocationState(t), scene.Noon).Verb, "with every cause gone it is done")
}
