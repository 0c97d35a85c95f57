package lifecycle_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestGuardsStandInTheOrderOfTheDesign(t *testing.T) {
	var got []Reason
	for _, g := range lifecycle.Guards() {
		got = append(got, g.Reason)
	}
	require.Equal(t, scene.DesignOrder, slices.Compact(got), "those of one reason stand together")

	var listed []Reason
	for _, r := range Reasons {
		if !slices.Contains([]Reason{ReasonRecordMalformed, ReasonCallWithheld, ReasonProviderAbsent, ReasonProviderUnreachable, ReasonSidecarHeld, ReasonSidecarUnknown, ReasonLeaderHeld, ReasonLeaderUnknown, ReasonAPIServerUnknown}, r) {
			listed = append(listed, r)
		}
	}
	require.Equal(t, scene.DesignOrder, listed, "Reasons, which docs and metrics follow, has the same order")
}

// everythingWrong returns a state that makes every guard hold at the same time. The exception: the
// alert itself can have only one problem.
const everythingWrong = `
policy: {mode: observe, witness: DiskPressure=True, for: 30m, approval: true, plan: [rollout-restart]}
provided: [rollout-restart]
survey: {step: rollout-restart}
windows: ["02:00-04:00"]
limits: {repairsPerNode: 1}
node:
  labels: {drydock.dev/exclude: ""}
  annotations: {drydock.dev/pause: "true"}
  taints: [ToBeDeletedByClusterAutoscaler]
  cordoned: true
  controlPlane: true
  conditions: {DiskPressure: "False"}
history: [{id: r0, policy: node-not-ready, outcome: Recovered, steps: ["reboot:1"], began: "<now-9m>", ended: "<now-1m>"}]
leader: {v: 1, id: r9, policy: mesh, cause: {alert: "aa"}, location: eu, phase: Verifying, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-1m>", since: "<now-1m>", deadline: "<now+1m>", intent: {id: r9-0-1, at: "<now-1m>", successor: n2},
  moves: [{location: eu, from: n1, to: n2, before: {n1: "", n2: null}}]}
denied: nodes are forbidden
word: {watchdogMisses: 3, replicas: [{alert: silenced, err: "down"}, {alert: inhibited, err: "down"}]}
ledger: {begun: [20h], exhausted: {node-not-ready: 3}, wentBack: 10m}
fleet: {unhealthy: 3, inFlight: 1, controlPlane: 2, controlPlaneDown: 1, common: 3, tried: Exhausted}
`

// TestEachGuardSpeaksBeforeThoseBehindIt begins with everythingWrong, and removes each time the
// cause that the decision just reported. The next reason must be that of the next guard. So it
// tests the order in real decisions, and not only the list.
func TestEachGuardSpeaksBeforeThoseBehindIt(t *testing.T) {
	sc := scene.Read(t, []byte(everythingWrong))
	remedies := remediesOf(sc)
	for _, want := range scene.DesignOrder {
		if want == ReasonAlertResolved || want == ReasonFleetUnhealthy {
			continue // an alert cannot both have ended and fire: held-AlertResolved covers it
		}
		d := node.Decide(sc.State(t), scene.Noon)
		require.Equal(t, lifecycle.VerbHold, d.Verb, "%s: %s", want, d.Message)
		require.Equal(t, want, d.Reason, d.Message)
		remedies[want]()
	}
	require.Equal(t, lifecycle.VerbIssue, node.Decide(sc.State(t), scene.Noon).Verb, "with every cause gone it is done")
}

// remediesOf returns a function for each guard that removes the guard's cause in everythingWrong.
func remediesOf(sc *scene.Scene) map[Reason]func() {
	return map[Reason]func(){
		ReasonExcluded:        func() { delete(sc.Node.Labels, ExcludeLabel) },
		ReasonPaused:          func() { delete(sc.Node.Annotations, PauseKey) },
		ReasonNodeLeaving:     func() { sc.Node.Taints = nil },
		ReasonCordonedByOther: func() { sc.Node.Cordoned = false },
		ReasonAlertUnconfirmed: func() {
			sc.Word.Replicas[0].Err, sc.Word.Replicas[1].Err = "", ""
		},
		ReasonBlind:            func() { sc.Word.WatchdogMisses = 0 },
		ReasonWritesDenied:     func() { sc.Denied = "" },
		ReasonStoreWentBack:    func() { sc.Ledger.WentBack = "" },
		ReasonSilenced:         func() { sc.Word.Replicas[0].Alert = "active" },
		ReasonInhibited:        func() { sc.Word.Replicas[1].Alert = "active" },
		ReasonNotWitnessed:     func() { sc.Node.Conditions["DiskPressure"] = "True" },
		ReasonTooYoung:         func() { sc.Policy.For = "1m" },
		ReasonFleetUnhealthy:   nil, // it does not hold a step for many nodes: held-FleetUnhealthy covers it
		ReasonOutsideWindow:    func() { sc.Windows = nil },
		ReasonNodeUnderRepair:  func() { sc.Leader = nil },
		ReasonCooldown:         func() { sc.History = nil },
		ReasonRepairsSpent:     func() { sc.Limits.RepairsPerNode = 2 },
		ReasonPolicyFailing:    func() { sc.Ledger.Exhausted = nil },
		ReasonAwaitingApproval: func() { sc.Policy.Approval = false },
		ReasonControlPlaneBusy: func() { sc.Fleet.ControlPlane, sc.Fleet.ControlPlaneDown = 0, 0; sc.Node.ControlPlane = false },
		ReasonClusterWide:      func() { sc.Word.Sick = 4 },
		ReasonAtLimit:          func() { sc.Fleet.InFlight = 0 },
		ReasonCommonCause:      func() { sc.Fleet.Common = 0 },
		ReasonObserving:        func() { sc.Policy.Mode = ModeEnforce },
	}
}

// TestNoGuardIsIdle removes the guards one at a time. A golden with the name of the guard's reason
// must then change. Otherwise no golden tests the guard.
func TestNoGuardIsIdle(t *testing.T) {
	pinned := map[string]scene.Golden{}
	for _, g := range scene.GoldensIn(t, "../../targets/node/testdata/decide") {
		pinned[g.Name] = g
	}
	scene.WithoutEachReason(t, func(t *testing.T, gone Reason, left []lifecycle.Guard) {
		g, ok := pinned["held-"+string(gone)]
		require.True(t, ok, "no golden held-%s", gone)
		s := g.State(t)
		s.Guards = left
		require.NotEqual(t, g.Want(t), scene.Render(t, node.Decide(s, scene.Noon)))
	})
}

// TestNoRowOfTheGuardsIsIdle is TestNoGuardIsIdle for each single row of the table, because several
// rows have the same reason for different kinds of target.
func TestNoRowOfTheGuardsIsIdle(t *testing.T) {
	var states []*lifecycle.State
	var decisions []func() lifecycle.Decision
	for _, g := range scene.GoldensIn(t, "../../targets/node/testdata/decide") {
		s := g.State(t)
		states, decisions = append(states, s), append(decisions, func() lifecycle.Decision { return node.Decide(s, scene.Noon) })
	}
	for _, g := range scene.GoldensIn(t, "../../targets/location/testdata/decide") {
		s := g.LocationState(t)
		states, decisions = append(states, s.State), append(decisions, func() lifecycle.Decision { return location.Decide(s, scene.Noon) })
	}
	for _, g := range scene.GoldensIn(t, "../../targets/sidecar/testdata/decide") {
		s := g.SidecarState(t)
		states, decisions = append(states, s.State), append(decisions, func() lifecycle.Decision { return sidecar.Decide(s, scene.Noon) })
	}
	decided := func() (out []lifecycle.Decision) {
		for _, decide := range decisions {
			out = append(out, decide())
		}
		return out
	}
	whole := decided()
	for i, gone := range lifecycle.Guards() {
		t.Run(fmt.Sprintf("%s, row %d", gone.Reason, i), func(t *testing.T) {
			for _, s := range states {
				s.Guards = slices.Delete(lifecycle.Guards(), i, i+1)
			}
			require.False(t, reflect.DeepEqual(whole, decided()), "row %d", i)
		})
	}
}
