package node_test

import (
	"strings"
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

// TestOnlyAWithheldCallIsGivenBack: an attempt counts, unless the process that wrote the intent
// withheld the call itself.
func TestOnlyAWithheldCallIsGivenBack(t *testing.T) {
	withheld := lifecycle.Call{IntentID: "r1-0-1", Outcome: CallRefused, Withheld: ReasonCallWithheld, Why: "the intent is too old"}
	for name, c := range map[string]struct {
		change func(*lifecycle.Call, *Record)
		back   bool
	}{
		"withheld":                       {func(*lifecycle.Call, *Record) {}, true},
		"the provider refused":           {func(c *lifecycle.Call, _ *Record) { c.Withheld = "" }, false},
		"nobody knows":                   {func(c *lifecycle.Call, _ *Record) { c.Outcome = CallUnknown }, false},
		"another attempt":                {func(c *lifecycle.Call, _ *Record) { c.IntentID = strings.TrimSuffix(c.IntentID, "1") + "2" }, false},
		"again and again for a day":      {func(_ *lifecycle.Call, r *Record) { r.Began = scene.Noon.Add(-25 * time.Hour) }, false},
		"by a person, who may take days": {func(c *lifecycle.Call, r *Record) { c.Withheld, r.Began = ReasonPaused, scene.Noon.Add(-25*time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			s.Node = scene.Unready(scene.Acting())
			r := ReadJournal(s.Node).Record
			r.Policy, r.Cause.Alert, r.Done, r.Deadline = "node-not-ready", scene.FP, Attempts{{Name: "reboot", Number: 1}}, scene.Noon.Add(time.Minute)
			call := withheld
			c.change(&call, r)
			s.Journal.Record, s.Call = r, &call
			d := node.Decide(s, scene.Noon.Add(time.Second))
			if !c.back {
				require.Equal(t, []string{"reboot:1"}, r.Done.Texts())
				require.NotEqual(t, lifecycle.VerbHold, d.Verb)
				return
			}
			require.Equal(t, lifecycle.VerbHold, d.Verb)
			require.Equal(t, PhasePending, d.Record.Phase)
			require.Equal(t, call.Withheld, d.Record.Hold.Reason)
			require.Empty(t, d.Record.Done)
			again, err := DecodeRecord(d.Record.Encode())
			require.NoError(t, err)
			s.Journal.Record, s.Call = again, nil
			require.Equal(t, lifecycle.VerbHold, node.Decide(s, scene.Noon.Add(2*time.Second)).Verb, "it waits a moment")
			proven, missing := node.Proven(s)
			require.False(t, proven)
			require.Contains(t, missing, "the intent is too old")
			again.Since = scene.Noon.Add(-2 * time.Minute)
			issued := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbIssue, issued.Verb, issued.Message)
			require.Equal(t, StepRef{Name: "reboot", Attempt: 1}, issued.Record.Step)
			require.Equal(t, []string{"reboot:1"}, issued.Record.Done.Texts())

			// A former leader may remember that the call was withheld. This says nothing about the
			// next call.
			s.Journal.Record, s.Call = issued.Record, &call
			require.NotEqual(t, lifecycle.VerbHold, node.Decide(s, scene.Noon.Add(time.Second)).Verb, "the call that may be under way is not given back")
			over := issued.Record.Clone()
			over.Phase, over.Intent.Outcome, over.Deadline = PhaseVerifying, CallUnknown, scene.Noon
			s.Journal.Record, s.Call = over, nil
			next, _ := s.NextStep(node.PolicyOf(s), over, over.Step)
			d = node.Decide(s, scene.Noon.Add(time.Second))
			require.Equal(t, next, d.Record.Step, "what was issued is not issued again under the same attempt")
		})
	}
}

// TestARefusalInAClockJumpSetsNoFarDeadline: when the refusal is recorded, the process's clock is a
// month ahead. A moment later the clock is right again.
func TestARefusalInAClockJumpSetsNoFarDeadline(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a right clock": 0, "a month ahead": 30 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			s.Node = scene.Acting()
			r := ReadJournal(s.Node).Record
			r.Policy, r.Cause.Alert, r.Done, r.Deadline = "node-not-ready", scene.FP, Attempts{{Name: "reboot", Number: 1}}, scene.Noon.Add(time.Minute)
			s.Journal.Record, s.Call = r, &lifecycle.Call{IntentID: "r1-0-1", Outcome: CallRefused, Why: "no quota"}
			d := node.Decide(s, scene.Noon.Add(time.Second).Add(ahead))
			require.Equal(t, lifecycle.VerbVerify, d.Verb)
			require.LessOrEqual(t, d.Record.Deadline.Sub(scene.Noon), 10*time.Minute)
			if ahead == 0 {
				require.Equal(t, scene.Noon.Add(time.Second).Add(node.RefusedFor), d.Record.Deadline)
			}
		})
	}
}

// withheldCalls are cases for a sidecar and a leader, as for a node. Only after the first kind of
// call the attempt does not count.
var withheldCalls = map[string]struct {
	change func(*lifecycle.Call, *Record)
	back   bool
}{
	"withheld":                       {func(*lifecycle.Call, *Record) {}, true},
	"it was refused":                 {func(c *lifecycle.Call, _ *Record) { c.Withheld = "" }, false},
	"nobody knows":                   {func(c *lifecycle.Call, _ *Record) { c.Outcome = CallUnknown }, false},
	"another attempt":                {func(c *lifecycle.Call, _ *Record) { c.IntentID = strings.TrimSuffix(c.IntentID, "1") + "2" }, false},
	"again and again for a day":      {func(_ *lifecycle.Call, r *Record) { r.Began = scene.Noon.Add(-25 * time.Hour) }, false},
	"by a person, who may take days": {func(c *lifecycle.Call, r *Record) { c.Withheld, r.Began = ReasonPaused, scene.Noon.Add(-25*time.Hour) }, true},
}

// TestOnlyAWithheldApprovalIsGivenBack: the next attempt has a new id and a new task.
func TestOnlyAWithheldApprovalIsGivenBack(t *testing.T) {
	for name, c := range withheldCalls {
		t.Run(name, func(t *testing.T) {
			s := scene.ReadSidecar(t, "{}").SidecarState(t)
			first := sidecar.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbIssue, first.Verb, first.Message)
			r := first.Record
			s.Record, s.Call = r, &lifecycle.Call{IntentID: r.Intent.ID, Outcome: CallRefused, Withheld: ReasonCallWithheld, Why: "the intent is too old"}
			c.change(s.Call, r)
			d := sidecar.Decide(s, scene.Noon.Add(time.Second))
			if !c.back {
				require.NotEqual(t, lifecycle.VerbHold, d.Verb)
				return
			}
			require.Equal(t, lifecycle.VerbHold, d.Verb)
			require.Equal(t, s.Call.Withheld, d.Record.Hold.Reason)
			again, err := DecodeRecordOf(s.Key, d.Record.Encode())
			require.NoError(t, err)
			require.Empty(t, again.Done)
			s.Record, s.Call = again, nil
			seen := func(now time.Time) time.Time {
				s.Seen.At, s.Snapshot.AskedAt, s.LookSince, s.Heartbeats.ReadAt = now, now, now, now
				return now
			}
			require.Equal(t, lifecycle.VerbHold, sidecar.Decide(s, seen(scene.Noon.Add(20*time.Second))).Verb, "it waits a moment")
			next := sidecar.Decide(s, seen(scene.Noon.Add(40*time.Second)))
			require.Equal(t, lifecycle.VerbIssue, next.Verb, next.Message)
			require.Equal(t, StepRef{Name: "mark-ready", Attempt: 1}, next.Record.Step)
			require.NotEqual(t, r.Intent.ID, next.Record.Intent.ID)
			s.Seen.Health = sidecar.HealthReady
			ready := sidecar.Decide(s, seen(scene.Noon.Add(41*time.Second)))
			require.NotNil(t, ready.Ended, ready.Message)
			require.Equal(t, OutcomeSelfRecovered, ready.Ended.Outcome, "nobody approved it")
		})
	}
}

// TestOnlyAWithheldMoveIsGivenBack: the next attempt may choose the same successor.
func TestOnlyAWithheldMoveIsGivenBack(t *testing.T) {
	for name, c := range withheldCalls {
		t.Run(name, func(t *testing.T) {
			s := scene.ReadLocation(t, "{}").LocationState(t)
			first := location.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbIssue, first.Verb, first.Message)
			r := first.Record
			s.Record, s.Journal.Records = r, map[string]*Record{LocationKey: r}
			s.Call = &lifecycle.Call{IntentID: r.Intent.ID, Outcome: CallRefused, Withheld: ReasonCallWithheld, Why: "the intent is too old"}
			c.change(s.Call, r)
			d := location.Decide(s, scene.Noon.Add(time.Second))
			if !c.back {
				require.NotEqual(t, lifecycle.VerbHold, d.Verb)
				return
			}
			require.Equal(t, lifecycle.VerbHold, d.Verb)
			require.Equal(t, s.Call.Withheld, d.Record.Hold.Reason)
			again, err := DecodeRecordOf(LocationKey, d.Record.Encode())
			require.NoError(t, err)
			require.Empty(t, again.Done)
			require.Empty(t, again.Moves)
			require.Empty(t, again.Undo)
			s.Record, s.Journal.Records, s.Call = again, map[string]*Record{LocationKey: again}, nil
			seen := func(now time.Time) time.Time {
				s.Seen.At, s.Snapshot.AskedAt, s.LookSince, s.Heartbeats.ReadAt = now, now, now, now
				return now
			}
			require.Equal(t, lifecycle.VerbHold, location.Decide(s, seen(scene.Noon.Add(10*time.Second))).Verb, "it waits a moment")
			next := location.Decide(s, seen(scene.Noon.Add(20*time.Second)))
			require.Equal(t, lifecycle.VerbIssue, next.Verb, next.Message)
			require.Equal(t, StepRef{Name: "promote-leader", Attempt: 1}, next.Record.Step)
			require.Equal(t, "n2", next.Record.Intent.Successor)
			require.NotEqual(t, r.Intent.ID, next.Record.Intent.ID)
			require.NoError(t, func() error { _, err := DecodeRecordOf(LocationKey, next.Record.Encode()); return err }())
		})
	}
}
