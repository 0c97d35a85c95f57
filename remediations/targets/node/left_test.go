package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAClockThatIsAheadEndsNoHold: changes that an ended repair has left stay while the person's
// annotation is on the Node. This holds even if a clock that no lease confirms shows a later time.
func TestAClockThatIsAheadEndsNoHold(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		back       bool
	}{
		"a pause that is over by this clock":     {key: PauseKey, value: scene.Noon.Add(-time.Hour).Format(time.RFC3339)},
		"break-glass that is over by this clock": {key: BreakGlassKey, value: "why"},
		"neither":                                {back: true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := &scene.Scene{Alerts: []scene.Alert{}, Node: scene.Node{Ready: "True", Cordoned: true}}
			sc.Ledger.BreakGlassFor = "2h"
			s := sc.State(t)
			if c.key != "" {
				s.Node.Annotations[c.key] = c.value
			}
			s.Ledger.Status.BreakGlass[s.Node.Name] = ledger.BreakGlass{Since: scene.Noon.Add(-2 * time.Hour), Why: c.value}
			s.Heartbeats = nil
			s.Journal.History = []Entry{{ID: "abc234", Ended: scene.Noon.Add(-time.Hour), Left: []Undo{{Kind: UndoCordon, At: scene.Noon.Add(-2 * time.Hour)}}}}
			require.Equal(t, c.back, node.Decide(s, scene.Noon).Uncordon)
		})
	}
}

// TestResetOnAHeldNodeLeavesTheCordon: the history keeps the cordon that the repair has left, so
// that Drydock removes it when the hold ends.
func TestResetOnAHeldNodeLeavesTheCordon(t *testing.T) {
	cordon := Undo{Kind: UndoCordon, At: scene.Noon.Add(-time.Hour)}
	for name, c := range map[string]struct {
		node scene.Node
		held bool
		left []Undo
	}{
		"paused":             {node: scene.Node{Annotations: map[string]string{PauseKey: "true"}}, held: true, left: []Undo{cordon}},
		"excluded":           {node: scene.Node{Labels: map[string]string{ExcludeLabel: ""}}, held: true, left: []Undo{cordon}},
		"being deleted":      {node: scene.Node{Deleting: true}, held: true, left: []Undo{cordon}},
		"nothing forbids it": {},
	} {
		t.Run(name, func(t *testing.T) {
			c.node.Ready, c.node.Cordoned = "True", true
			s := (&scene.Scene{Alerts: []scene.Alert{}, Node: c.node}).State(t)
			s.Node.Annotations[ResetKey] = "true"
			r := Record{V: 1, ID: "r9", Policy: "p", Cause: Cause{Alert: "a"}, Intent: &Intent{ID: "r9-0-1", At: scene.Noon}, Phase: PhaseExhausted, Step: StepRef{Name: "reboot", Attempt: 1}, Since: scene.Noon, Undo: []Undo{cordon}}
			s.Node.Annotations[NodeRepairKey] = r.Encode()
			s.Journal = ReadJournal(s.Node)
			require.NoError(t, s.Journal.Malformed)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbReset, d.Verb)
			require.Equal(t, !c.held, d.Uncordon)
			require.Equal(t, c.left, d.Left)
			require.Equal(t, c.held, d.LeftOf == "r9")
		})
	}
}

// TestALaterRepairThatHasBegunKeepsTheCordon: a change that an earlier repair has left is undone
// between repairs, and not during a repair.
func TestALaterRepairThatHasBegunKeepsTheCordon(t *testing.T) {
	for name, c := range map[string]struct {
		intent *Intent
		back   bool
	}{
		"it waits for its next attempt": {intent: &Intent{ID: "r2-0-1", At: scene.Noon.Add(-time.Minute), Outcome: CallAccepted}},
		"it has not begun":              {back: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{Node: scene.Node{Cordoned: true}}).State(t)
			s.Journal.Record = &Record{
				V: 1, ID: "r2", Policy: "node-not-ready", Cause: Cause{Alert: scene.FP}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1},
				Began: scene.Noon.Add(-time.Hour), Since: scene.Noon.Add(-time.Minute), Deadline: scene.Noon.Add(time.Hour), Intent: c.intent,
				Hold: lifecycle.NewHold(ReasonCooldown, lifecycle.Because("a test"), scene.Noon.Add(-time.Minute)),
			}
			s.Journal.History = []Entry{{ID: "r1", Ended: scene.Noon.Add(-time.Hour), Left: []Undo{{Kind: UndoCordon, At: scene.Noon.Add(-2 * time.Hour)}}}}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.back, d.LeftOf == "r1", d.Message)
			require.Equal(t, c.back, d.Uncordon)
		})
	}
}

// TestLeftChangesAreUndoneBesideARecordOnlyIfItHasRunOutOfSteps: while the record cannot be read,
// nothing is known about its repair, so the cordon stays.
func TestLeftChangesAreUndoneBesideARecordOnlyIfItHasRunOutOfSteps(t *testing.T) {
	for name, c := range map[string]struct {
		record func(s *lifecycle.State) string
		back   bool
	}{
		"its record cannot be read":     {record: func(*lifecycle.State) string { return "{" }},
		"it waits for its proof":        {record: func(s *lifecycle.State) string { return verifying(s).Encode() }},
		"its plan has run out of steps": {record: func(s *lifecycle.State) string { return verifying(s).Exhausted(scene.Noon).Encode() }, back: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{Node: scene.Node{Cordoned: true}}).State(t)
			s.Node.Annotations[NodeRepairKey] = c.record(s)
			s.Journal = ReadJournal(s.Node)
			s.Journal.History = []Entry{{ID: "r1", Outcome: OutcomeExhausted, Ended: scene.Noon.Add(-time.Hour), Left: []Undo{{Kind: UndoCordon, At: scene.Noon.Add(-2 * time.Hour)}}}}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.back, d.LeftOf == "r1", d.Message)
			require.Equal(t, c.back, d.Uncordon)
		})
	}
}
