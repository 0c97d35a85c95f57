package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnAlertOfAPolicyThatIsGoneLeadsToNothing: the target was found with an earlier
// configuration.
func TestAnAlertOfAPolicyThatIsGoneLeadsToNothing(t *testing.T) {
	s := scene.ReadSidecar(t, "{}").SidecarState(t)
	require.Equal(t, lifecycle.VerbIssue, sidecar.Decide(s, scene.Noon).Verb)
	s.Config.Policies = nil
	require.Equal(t, lifecycle.Decision{Verb: lifecycle.VerbRest}, sidecar.Decide(s, scene.Noon))
}

// TestOfSeveralReportedAlertsTheFirstIsNamed: mode observe has reported both alerts already, and
// the first is also the one that a repair would begin with.
func TestOfSeveralReportedAlertsTheFirstIsNamed(t *testing.T) {
	s := scene.Read(t, []byte(`
policy: {mode: observe, cooldown: 0s}
alerts: [{}, {fingerprint: "9999999999999999", active: true}]
history:
- {id: r0, policy: node-not-ready, outcome: Observed, steps: [], cause: "8b2d1f0c3a4e5d67", began: "<now-8m>", ended: "<now-5m>", would: {step: "reboot:1", at: "<now-8m>", until: "<now-5m>", illSince: "<now-10m>"}}
- {id: r1, policy: node-not-ready, outcome: Observed, steps: [], cause: "9999999999999999", began: "<now-8m>", ended: "<now-5m>", would: {step: "reboot:1", at: "<now-8m>", until: "<now-5m>", illSince: "<now-10m>"}}
`)).State(t)
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb)
	require.Contains(t, d.Message, "repair r0 would have issued reboot:1")
}

// TestAnObservedRepairIsReportedAlsoIfThePolicyEnforcesNow: the alert has ended before the policy
// could begin a real repair. The history keeps what mode observe has found.
func TestAnObservedRepairIsReportedAlsoIfThePolicyEnforcesNow(t *testing.T) {
	s := scene.Read(t, []byte(`
alerts: [{status: resolved}]
word: {replicas: [{alert: absent}, {alert: absent}]}
record: {v: 1, id: r1, policy: node-not-ready, cause: {alert: "8b2d1f0c3a4e5d67"}, phase: Pending, step: {index: 0, name: reboot, attempt: 1},
  began: "<now-20m>", since: "<now-20m>", deadline: "<now+23h>", hold: {reason: Observing, message: "would reboot n1 now", since: "<now-1m>"}}
`)).State(t)
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Equal(t, OutcomeObserved, d.Ended.Outcome)
}

// TestAlertsMoveWithTheirLocationAlsoAfterTheyWereReported: if another node leads the location, the
// alerts are removed from this Node, also if mode observe has nothing more to report about them.
// Alerts of a policy that is off stay.
func TestAlertsMoveWithTheirLocationAlsoAfterTheyWereReported(t *testing.T) {
	const reported = `, history: [{id: r0, policy: mesh-leader-degraded, target: leader, outcome: Observed, steps: [], cause: "8b2d1f0c3a4e5d67", began: "<now-8m>", ended: "<now-5m>",
  would: {step: "promote-leader:1", at: "<now-8m>", until: "<now-5m>", illSince: "<now-10m>"}}]`
	for name, c := range map[string]struct {
		scene string
		moved bool
	}{
		"another node leads":                          {`{policy: {mode: observe}, sight: {leader: n3}` + reported + "}", true},
		"this node leads":                             {`{policy: {mode: observe}` + reported + "}", false},
		"another node leads, and the policy is off":   {`{policy: {mode: "off"}, sight: {leader: n3}}`, false},
		"this node leads, and the policy is off, too": {`{policy: {mode: "off"}}`, false},
	} {
		s := scene.ReadLocation(t, c.scene).LocationState(t)
		d := location.Decide(s, scene.Noon)
		require.Equal(t, lifecycle.VerbRest, d.Verb, name)
		require.Equal(t, c.moved, len(d.Prune) > 0, name)
	}
}

// TestAStepThatDisruptsNothingNeedsNoLeases: a step of a provider's own that does not disrupt the
// node is issued without a count of stale leases, also if the leases cannot be listed.
func TestAStepThatDisruptsNothingNeedsNoLeases(t *testing.T) {
	for _, disruptive := range []bool{true, false} {
		s := scene.Read(t, []byte("{policy: {plan: [read-logs]}, provided: [read-logs], heartbeats: {read: never}}")).State(t)
		s.LeasesLost = scene.Noon.Add(-time.Hour)
		proof := func(*Intent, *NodeFacts, Answers) (bool, string) { return true, "" }
		s.Config.Registry = Registry{"read-logs": {Name: "read-logs", Verb: "read the logs of", Once: true, Disruptive: disruptive, Proof: proof}}
		d := node.Decide(s, scene.Noon)
		require.Equal(t, disruptive, d.Ask.Heartbeats, d.Message)
		require.Equal(t, map[bool]lifecycle.Verb{true: lifecycle.VerbHold, false: lifecycle.VerbIssue}[disruptive], d.Verb, d.Message)
	}
}

// TestAnAttemptThatWasWithheldForADay: a repair of a node ends, because it has changed nothing. A
// repair of a location may have moved the leadership before. So it continues, to prove or to undo
// these moves.
func TestAnAttemptThatWasWithheldForADay(t *testing.T) {
	withheld := func(r *Record) *lifecycle.Call {
		r.Began = scene.Noon.Add(-PendingFor)
		return &lifecycle.Call{IntentID: r.Intent.ID, Outcome: CallRefused, Withheld: ReasonCallWithheld, Why: "no route"}
	}
	s := scene.Read(t, []byte(`
record: {v: 1, id: r1, policy: node-not-ready, cause: {alert: "8b2d1f0c3a4e5d67"}, phase: Acting, step: {index: 0, name: reboot, attempt: 1}, done: ["reboot:1"],
  began: "<now-1h>", since: "<now-15s>", deadline: "<now+45s>", intent: {id: r1-0-1, at: "<now-15s>", bootID: boot1, uid: uid-n1, providerID: "civo://n1"}}
`)).State(t)
	s.Call = withheld(s.Journal.Record)
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbEnd, d.Verb, d.Message)
	require.Equal(t, OutcomeCancelled, d.Ended.Outcome)
	require.Empty(t, d.Ended.Steps, "the step was never issued")

	l := scene.ReadLocation(t, "{}").LocationState(t)
	r := scene.LocationRecord(PhaseActing)
	l.Record, l.Journal.Records, l.Call = r, map[string]*Record{LocationKey: r}, withheld(r)
	d = location.Decide(l, scene.Noon)
	require.Equal(t, lifecycle.VerbVerify, d.Verb, d.Message)
	require.Equal(t, r.Moves, d.Record.Moves)
}
