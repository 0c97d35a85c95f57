package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// exhaustedAndWell is a node whose repair was exhausted an hour ago, and that has been well for 40
// minutes: it is Ready with a fresh lease, no Alertmanager has its alert, and its policy's witness
// is Well.
const exhaustedAndWell = `
node: {ready: "True", cordoned: true}
alerts: []
word: {replicas: [{alert: absent}, {alert: absent}]}
lease: {}
wellFor: 40m
record:
  {v: 1, id: r1, policy: node-not-ready, cause: {alert: "8b2d1f0c3a4e5d67"}, phase: Exhausted, step: {index: 0, name: reboot, attempt: 2}, done: ["reboot:1", "reboot:2"],
  began: "<now-2h>", since: "<now-1h>", deadline: "0001-01-01T00:00:00Z", undo: [{kind: cordon, at: "<now-1h>"}],
  intent: {id: r1-0-2, at: "<now-80m>", bootID: boot1, uid: uid-n1, providerID: "civo://n1", outcome: accepted}}
`

// TestAnExhaustedNodeThatIsWellIsOneNotice: the record has the time since when the node is well,
// and one Event asks for a reset. The repair waits for a person.
func TestAnExhaustedNodeThatIsWellIsOneNotice(t *testing.T) {
	s := scene.Read(t, []byte(exhaustedAndWell)).State(t)
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb)
	require.True(t, d.Well, "the time for which the node is well goes on")
	require.NotNil(t, d.Record)
	require.Equal(t, PhaseExhausted, d.Record.Phase)
	require.Equal(t, scene.Noon.Add(-40*time.Minute), d.Record.WellSince.UTC())
	require.Len(t, d.Notices, 1)
	require.Equal(t, lifecycle.NodeWellAgain, d.Notices[0].Reason)
	require.Contains(t, d.Notices[0].Message, "well since 2026-03-04T11:20:00Z")
	require.Contains(t, d.Notices[0].Message, "kubectl drydock reset n1")

	s.Journal.Record = d.Record
	d = node.Decide(s, scene.Noon)
	require.True(t, d.Well)
	require.Empty(t, d.Notices, "once")
	require.Nil(t, d.Record, "nothing is written again")
}

// TestAnExhaustedRepairThatIssuedNoStepNeedsOnlyAFreshLease: the plan ran out in an earlier repair
// that this one continued. This repair restarted nothing, so a renewal from any time counts.
func TestAnExhaustedRepairThatIssuedNoStepNeedsOnlyAFreshLease(t *testing.T) {
	s := scene.Read(t, []byte(exhaustedAndWell)).State(t)
	r := s.Journal.Record
	r.Step = StepRef{Name: "restart-kubelet", Attempt: 1}
	r.After, r.Done, r.Intent = &After{ID: "r0", Step: r.Step, Steps: Attempts{r.Step.Issued()}}, nil, nil
	d := node.Decide(s, scene.Noon)
	require.Len(t, d.Notices, 1)
	require.Equal(t, lifecycle.NodeWellAgain, d.Notices[0].Reason)
}

// TestAnExhaustedNodeThatIsNotWellIsNotSaidToBe: each case shows that the node is ill, or does not
// show that it is well. If the node is ill, the time is removed from the record. If Drydock cannot
// observe the node, the record stays.
func TestAnExhaustedNodeThatIsNotWellIsNotSaidToBe(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene.Scene)
		ill    bool
	}{
		"not Ready":             {func(s *scene.Scene) { s.Node.Ready = "False" }, true},
		"its alert fires":       {func(s *scene.Scene) { s.Word.Replicas[1].Alert = "active" }, true},
		"its alert is silenced": {func(s *scene.Scene) { s.Word.Replicas[1].Alert = "silenced" }, true},
		"its policy is off":     {func(s *scene.Scene) { s.Policy.Mode = ModeOff }, true},
		"its policy is gone":    {func(s *scene.Scene) { s.Policy.Gone = true }, true},
		"its witness says ill": {func(s *scene.Scene) {
			s.Policy.Witness, s.Node.Conditions = "DiskPressure=True", map[string]string{"DiskPressure": "True"}
		}, true},
		"its lease is stale":              {func(s *scene.Scene) { s.Lease.Renewed = "5m" }, false},
		"its lease was not read":          {func(s *scene.Scene) { s.Lease = nil }, false},
		"no Alertmanager was asked":       {func(s *scene.Scene) { s.Word.Never = true }, false},
		"well for less than proofFor":     {func(s *scene.Scene) { s.WellFor = "10s" }, false},
		"found well for the first time":   {func(s *scene.Scene) { s.WellFor = "" }, false},
		"the Watchdog has not come since": {func(s *scene.Scene) { s.WatchdogAge = "0s" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scene.Read(t, []byte(exhaustedAndWell))
			c.change(sc)
			s := sc.State(t)
			d := node.Decide(s, scene.Noon)
			require.Empty(t, d.Notices)
			require.Nil(t, d.Record, "%s", d.Message)

			s.Journal.Record.WellSince = scene.Noon.Add(-time.Hour)
			d = node.Decide(s, scene.Noon)
			require.Empty(t, d.Notices)
			if !c.ill {
				require.Nil(t, d.Record, "nobody knows")
				return
			}
			require.NotNil(t, d.Record)
			require.Zero(t, d.Record.WellSince)
			require.False(t, d.Well)
		})
	}
}

// TestAnExhaustedRepairEndsWhenItsNodeIsWell: the node must be well for endWhenWell without
// interruption. Without that setting, the repair does not end. The cordon of an ended repair is
// removed.
func TestAnExhaustedRepairEndsWhenItsNodeIsWell(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		ends  bool
	}{
		"well for longer": {30 * time.Minute, true}, "well for a minute longer": {39 * time.Minute, true}, "just as long, and not asked since": {40 * time.Minute, false}, "not yet": {41 * time.Minute, false}, "off": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, []byte(exhaustedAndWell)).State(t)
			s.Config.Policies[0].EndWhenWell = c.after
			d := node.Decide(s, scene.Noon)
			if !c.ends {
				require.Equal(t, lifecycle.VerbRest, d.Verb)
				require.False(t, d.Uncordon)
				switch {
				case c.after > 40*time.Minute:
					require.Equal(t, scene.Noon.Add(time.Minute), d.Recheck)
				case c.after > 0:
					require.True(t, d.Ask.Alerts, "everything is asked once more at the end of that time")
				}
				return
			}
			require.Equal(t, lifecycle.VerbEnd, d.Verb)
			require.Nil(t, d.Record)
			require.Equal(t, OutcomeSelfRecovered, d.Ended.Outcome)
			require.True(t, d.Uncordon)
			require.NotNil(t, d.Ended.Last, "an alert that comes back goes on with the plan, as after every SelfRecovered")
		})
	}
}
