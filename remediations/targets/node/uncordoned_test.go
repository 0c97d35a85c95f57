package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestPeopleAreWarnedOnceThatAnExhaustedNodeWasUncordoned: without the cordon of onExhausted, pods
// may be scheduled to a node that is not cured. There are two controls: the node is still cordoned,
// or the cordon was not the policy's.
func TestPeopleAreWarnedOnceThatAnExhaustedNodeWasUncordoned(t *testing.T) {
	cordon := Undo{Kind: UndoCordon, At: scene.Noon}
	for name, c := range map[string]struct {
		cordoned bool
		undo     []Undo
		warned   bool
	}{
		"somebody uncordoned it":      {undo: []Undo{cordon}, warned: true},
		"the cordon stands":           {undo: []Undo{cordon}, cordoned: true},
		"the policy did not cordon":   {},
		"and another's mark is there": {undo: []Undo{{Kind: UndoTaint, Key: OutOfServiceTaint, At: scene.Noon}, cordon}, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scene.Scene{}).State(t)
			s.Node.Spec.Unschedulable = c.cordoned
			s.Journal.Record = &Record{ID: "r1", Policy: "node-not-ready", Phase: PhaseExhausted, Undo: c.undo}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbRest, d.Verb)
			if !c.warned {
				require.Empty(t, d.Notices)
				require.Nil(t, d.Record, "nothing is written")
				return
			}
			require.Len(t, d.Notices, 1)
			require.Equal(t, lifecycle.NodeUncordoned, d.Notices[0].Reason)
			require.Contains(t, d.Notices[0].Message, "repair r1 by policy node-not-ready did not cure the node")
			require.Equal(t, PhaseExhausted, d.Record.Phase, "the repair still waits for a person")
			require.NotContains(t, d.Record.Undo, cordon, "a reset has no cordon to take back")
			require.Len(t, d.Record.Undo, len(c.undo)-1, "what else is to be taken back stays on record")

			s.Journal.Record = d.Record
			require.Empty(t, node.Decide(s, scene.Noon).Notices, "once")
		})
	}
}
