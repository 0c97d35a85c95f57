package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// movedLocation returns location eu after its leadership was moved from n1 to n2. Its record is in
// phase Verifying, nothing is proven yet, and the alert fires. change may change that.
func movedLocation(t *testing.T, change func(s *location.State, r *Record)) *location.State {
	t.Helper()
	s := scene.ReadLocation(t, `
leader: {v: 1, id: r1, policy: mesh-leader-degraded, cause: {alert: 8b2d1f0c3a4e5d67}, location: eu, phase: Verifying, step: {index: 0, name: promote-leader, attempt: 1},
  began: "<now-90s>", since: "<now-80s>", deadline: "<now+38s>",
  done: ["promote-leader:1"], moves: [{location: eu, from: n1, to: n2, before: {n1: "", n2: null}}],
  intent: {id: r1-0-1, at: "<now-82s>", uid: uid-n1, successor: n2, outcome: accepted},
  undo: [{kind: leader, key: n2, at: "<now-82s>"}]}
sight: {leader: n2, candidates: [n3]}`).LocationState(t)
	if change != nil {
		change(s, s.Record)
	}
	return s
}

// answers makes the location well for this long, and well with a Watchdog since.
func answers(s *location.State, since time.Duration) {
	s.Seen.Reached, s.Seen.ReachedWhy = true, ""
	s.WellSince, s.WellHeard = scene.Noon.Add(-since), alerts.Heard{}
	for _, r := range s.Snapshot.Replicas {
		s.WellHeard[r.URL] = s.WellSince
	}
}

// alertGone removes the alert from all Alertmanagers.
func alertGone(s *location.State) {
	for i := range s.Snapshot.Replicas {
		s.Snapshot.Replicas[i].Alerts = nil
	}
}

// TestTheCureNeedsAnswersAndALivingPrometheus: without an answer of an Alertmanager, or without a
// Watchdog since the target is well, no cure is proven.
func TestTheCureNeedsAnswersAndALivingPrometheus(t *testing.T) {
	silent := func(s *location.State) { s.WellHeard, _ = s.Snapshot.Heard() }
	for name, c := range map[string]struct {
		change func(s *location.State)
		waits  string // what the message has; empty: the repair ends
	}{
		"proven":                             {func(*location.State) {}, ""},
		"no Alertmanager was asked yet":      {func(s *location.State) { s.Snapshot = nil }, "asking Alertmanager"},
		"no Watchdog since":                  {silent, "waiting for the next Watchdog alert, which shows that Prometheus still works"},
		"no Watchdog, and none is needed":    {func(s *location.State) { silent(s); s.Config.Watchdog = false }, ""},
		"the Watchdog of an earlier episode": {func(s *location.State) { s.WellSince, s.Config.Policies[0].ProofFor = time.Time{}, 0 }, "waiting for the next Watchdog alert"},
		"a replica's clock is ahead": {func(s *location.State) {
			silent(s)
			s.Snapshot.Replicas[0].WatchdogAt = scene.Noon.Add(time.Hour)
		}, "the clock of Alertmanager http://alertmanager-0 is ahead"},
	} {
		t.Run(name, func(t *testing.T) {
			s := movedLocation(t, func(s *location.State, _ *Record) {
				answers(s, 65*time.Second)
				alertGone(s)
				c.change(s)
			})
			d := location.Decide(s, scene.Noon)
			require.Equal(t, c.waits == "", d.Verb == lifecycle.VerbEnd, d.Message)
			if c.waits != "" {
				require.Equal(t, lifecycle.VerbWait, d.Verb)
				require.Contains(t, d.Message, c.waits)
				require.Equal(t, s.Snapshot == nil, d.Ask.Alerts)
			}
		})
	}
}

// TestALateAnswerToTheCallIsWrittenOnce: Drydock writes the outcome of a call if the record does
// not have it yet. An answer to another attempt, or one without an outcome, changes nothing.
func TestALateAnswerToTheCallIsWrittenOnce(t *testing.T) {
	for name, c := range map[string]struct {
		recorded CallOutcome
		call     lifecycle.Call
		written  bool
	}{
		"accepted":                {CallUnknown, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallAccepted}, true},
		"refused":                 {CallUnknown, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallRefused}, true},
		"still unknown":           {CallUnknown, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallUnknown}, false},
		"no answer yet":           {CallUnknown, lifecycle.Call{IntentID: "r1-0-1"}, false},
		"of another attempt":      {CallUnknown, lifecycle.Call{IntentID: "r1-0-2", Outcome: CallAccepted}, false},
		"on record as accepted":   {CallAccepted, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallAccepted}, false},
		"on record, and refused":  {CallAccepted, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallRefused}, false},
		"refused, and on record":  {CallRefused, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallRefused}, false},
		"refused, then no answer": {CallRefused, lifecycle.Call{IntentID: "r1-0-1", Outcome: CallUnknown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := movedLocation(t, func(s *location.State, r *Record) { r.Intent.Outcome, s.Call = c.recorded, &c.call })
			d := location.Decide(s, scene.Noon)
			require.Equal(t, c.written, d.Record != nil, d.Message)
			if c.written {
				require.Equal(t, lifecycle.VerbVerify, d.Verb)
				require.Equal(t, c.call.Outcome, d.Record.Intent.Outcome)
			}
		})
	}
}

// TestWhatFollowsAMoveThatDidNotCure: the repair is between two attempts, unless a row says
// something else.
func TestWhatFollowsAMoveThatDidNotCure(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *location.State, r *Record)
		verb   lifecycle.Verb
		reason Reason
		says   string
	}{
		"nothing holds the next move": {func(*location.State, *Record) {}, lifecycle.VerbIssue, "", "move the mesh leadership of location eu from n2 to n3 (attempt 2)"},
		"its policy repairs nodes now": {func(s *location.State, _ *Record) { s.Config.Policies[0].Kind = KindNode }, lifecycle.VerbEnd, "",
			"policy mesh-leader-degraded is no longer configured, or off"},
		"the plan lost the attempt": {func(s *location.State, _ *Record) { s.Config.Policies[0].Plan[0].Attempts = 1 }, lifecycle.VerbIssue, "",
			"put the mesh leadership of location eu back"},
		"the last check stopped the move": {func(_ *location.State, r *Record) {
			r.Intent, r.Since = &Intent{At: scene.Noon.Add(-8 * time.Second), Successor: "n2", Why: "n3 was excluded"}, scene.Noon.Add(-5*time.Second)
			r.Hold = &Hold{Reason: ReasonCallWithheld, Message: "nothing was done: n3 was excluded", Since: r.Since}
		}, lifecycle.VerbHold, ReasonCallWithheld, "nothing was done"},
		"it answers, and the alert fires": {func(s *location.State, _ *Record) { answers(s, 61*time.Second) }, lifecycle.VerbHold, ReasonLeaderHeld,
			"location eu is reachable from other locations"},
		"it answers, and the alert is gone": {func(s *location.State, _ *Record) { answers(s, 30*time.Second); alertGone(s) }, lifecycle.VerbWait, "",
			"this proves the cure if it lasts"},
		"it answers, and the repair's time has ended": {func(s *location.State, r *Record) {
			answers(s, 30*time.Second)
			alertGone(s)
			r.Deadline, r.Hold.Reason = scene.Noon, ReasonAlertResolved
		}, lifecycle.VerbEnd, "", "was not proven to cure the location"},
	} {
		t.Run(name, func(t *testing.T) {
			s := movedLocation(t, func(s *location.State, r *Record) {
				r.Phase, r.Step.Attempt, r.Since, r.Deadline = PhasePending, 2, scene.Noon.Add(-70*time.Second), scene.Noon.Add(23*time.Hour)
				r.Hold = &Hold{Reason: ReasonSilenced, Message: "covered by silence x", Since: r.Since}
				c.change(s, r)
			})
			d := location.Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason, d.Message)
			require.Contains(t, d.Message, c.says)
		})
	}
}

// TestAnImpossibleDeadlineIsReplaced: half of the leases are stale, so no clock is confirmed. A
// proof that is pending does not leave the impossible deadline on record.
func TestAnImpossibleDeadlineIsReplaced(t *testing.T) {
	s := movedLocation(t, func(s *location.State, r *Record) {
		answers(s, 30*time.Second)
		alertGone(s)
		r.Deadline, s.Heartbeats.Stale = FarAway, 5
	})
	d := location.Decide(s, scene.Noon)
	require.Equal(t, ReasonAlertResolved, d.Reason, d.Message)
	require.NotNil(t, d.Record)
	require.False(t, d.Record.Deadline.After(scene.Noon.Add(PendingFor)))
}

// TestTheNextObservationCountsFromTheLast: it is due 15 seconds after the last one began, or after
// the last one ended if that took so long that its result is not used.
func TestTheNextObservationCountsFromTheLast(t *testing.T) {
	for took, c := range map[string]struct {
		reason  Reason
		recheck time.Duration
	}{
		"0s": {ReasonLeaderHeld, 3 * time.Second}, "5s": {ReasonLeaderHeld, 3 * time.Second}, "9999ms": {ReasonLeaderHeld, 3 * time.Second},
		"10s": {ReasonLeaderUnknown, 13 * time.Second}, "11s": {ReasonLeaderUnknown, 14 * time.Second},
	} {
		reached := "true"
		if c.reason == ReasonLeaderUnknown {
			reached = "false" // a location that answers needs no other finding
		}
		d := location.Decide(scene.ReadLocation(t, "sight: {age: 12s, took: "+took+", reached: "+reached+"}").LocationState(t), scene.Noon)
		require.Equal(t, lifecycle.VerbHold, d.Verb, "%s: %s", took, d.Message)
		require.Equal(t, c.reason, d.Reason, took)
		require.Equal(t, scene.Noon.Add(c.recheck), d.Recheck, took)
	}
}

// TestASlowObservationThatWasDroppedIsMadeAgain: after a call Drydock drops the last observation,
// and still knows how long it took.
func TestASlowObservationThatWasDroppedIsMadeAgain(t *testing.T) {
	d := location.Decide(scene.ReadLocation(t, "sight: {never: true, took: 11s}").LocationState(t), scene.Noon)
	require.Equal(t, lifecycle.VerbLook, d.Verb, d.Message)
	require.True(t, d.Ask.Observation)
	d = sidecar.Decide(scene.ReadSidecar(t, "sighting: {never: true, took: 11s}").SidecarState(t), scene.Noon)
	require.Equal(t, lifecycle.VerbLook, d.Verb, d.Message)
	require.True(t, d.Ask.Observation)
}
