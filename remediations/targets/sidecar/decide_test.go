package sidecar_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestDecideSidecarGoldens pins every decision about a pod's sidecar.
func TestDecideSidecarGoldens(t *testing.T) {
	scene.Pin(t, "decide", scene.Golden.SidecarState, sidecar.Decide, scene.Render, func(t *testing.T, s *sidecar.State, d lifecycle.Decision) { scene.Readable(t, s.Key, d) })
}

// bindsSidecars are the guards that hold an approval, which disrupts nothing. The other guards are
// only about disruption. A policy about sidecars needs no person's approval: its repairs have no
// record before they begin.
var bindsSidecars = map[Reason]bool{
	ReasonExcluded: true, ReasonPaused: true, ReasonNodeLeaving: true, ReasonCordonedByOther: true, ReasonAlertUnconfirmed: true, ReasonBlind: true, ReasonWritesDenied: true, ReasonSilenced: true,
	ReasonInhibited: true, ReasonAlertResolved: true, ReasonTooYoung: true, ReasonNodeUnderRepair: true, ReasonObserving: true,
}

// TestGuardsThatBindSidecars removes each guard in turn. Without a guard that binds sidecars, the
// golden of its name must differ. Without any other guard, no golden differs.
func TestGuardsThatBindSidecars(t *testing.T) {
	scene.MissedWithoutEachReason(t, scene.Golden.SidecarState, func(s *sidecar.State, left []lifecycle.Guard) string {
		s.Guards = left
		return scene.Render(t, sidecar.Decide(s, scene.Noon))
	}, func(t *testing.T, gone Reason, missed []string) {
		switch {
		case !bindsSidecars[gone]:
			require.Empty(t, missed)
		case gone == ReasonAlertResolved: // a ready sidecar reports that itself, and an ended alert is removed
		default:
			require.Contains(t, missed, "held-"+string(gone))
		}
	})
}

// everythingWrongWithASidecar has a cause for each guard that binds it, and for the observation of
// the pod.
const everythingWrongWithASidecar = `
policy: {mode: observe, for: 30m}
node:
  labels: {drydock.dev/exclude: ""}
  annotations: {drydock.dev/pause: "true"}
  taints: [ToBeDeletedByClusterAutoscaler]
  cordoned: true
leader: {v: 1, id: r9, policy: mesh, cause: {alert: "aa"}, location: eu, phase: Verifying, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-1m>", since: "<now-1m>", deadline: "<now+1m>", intent: {id: r9-0-1, at: "<now-1m>", successor: n2},
  moves: [{location: eu, from: n1, to: n2, before: {n1: "", n2: null}}]}
denied: nodes are forbidden
word: {watchdogMisses: 3, replicas: [{alert: silenced, err: "down"}, {alert: inhibited, err: "down"}]}
sighting: {unknown: "no answer", held: "SeiNode sei/a is paused", health: Ready}
`

// TestEachHoldOfASidecarSpeaksBeforeThoseBehindIt: the answer of a sidecar's owner comes after
// people's marks and the Alertmanagers' answers, and before Observing, which only a step that would
// be issued reaches.
func TestEachHoldOfASidecarSpeaksBeforeThoseBehindIt(t *testing.T) {
	sc := scene.ReadSidecar(t, everythingWrongWithASidecar)
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
		{ReasonSilenced, func() { sc.Word.Replicas[0].Alert = "active" }},
		{ReasonInhibited, func() { sc.Word.Replicas[1].Alert = "active" }},
		{ReasonTooYoung, func() { sc.Policy.For = "1m" }},
		{ReasonNodeUnderRepair, func() { sc.Leader = nil }},
		{ReasonSidecarUnknown, func() { sc.Sighting.Unknown = "" }},
		{ReasonSidecarHeld, func() { sc.Sighting.Held = "" }},
		{ReasonAlertResolved, func() { sc.Sighting.Health = sidecar.HealthProbeError }},
		{ReasonSidecarUnknown, func() { sc.Sighting.Health = sidecar.HealthNotReady }},
		{ReasonObserving, func() { sc.Policy.Mode = ModeEnforce }},
	}
	for _, step := range steps {
		d := sidecar.Decide(sc.SidecarState(t), scene.Noon)
		require.Equal(t, lifecycle.VerbHold, d.Verb, "%s: %s", step.reason, d.Message)
		require.Equal(t, step.reason, d.Reason, d.Message)
		step.remedy()
	}
	require.Equal(t, lifecycle.VerbIssue, sidecar.Decide(sc.SidecarState(t), scene.Noon).Verb, "with every cause gone it is done")
}

// TestHoldOfASidecarIsOnNoRecord: a record exists only while something is done, or would be done.
func TestHoldOfASidecarIsOnNoRecord(t *testing.T) {
	held := 0
	for _, g := range scene.GoldensIn(t, "decide") {
		s := g.SidecarState(t)
		d := sidecar.Decide(s, scene.Noon)
		require.True(t, d.Verb != lifecycle.VerbHold || d.Fleetwide || !d.Reason.Fleetwide(), g.Name)
		if s.Record == nil && d.Verb != lifecycle.VerbIssue && d.Reason != ReasonObserving {
			held++
			require.Nil(t, d.Record, g.Name)
		}
	}
	require.Greater(t, held, 20)
}
