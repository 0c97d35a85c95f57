package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestOneResetRestartsAStoppedPolicyAndForgetsASidecarsRepair: one reset is enough for both.
func TestOneResetRestartsAStoppedPolicyAndForgetsASidecarsRepair(t *testing.T) {
	s := (&scene.Scene{}).State(t)
	s.Node = scene.Unready(scene.Acting())
	s.Node.Annotations[ResetKey] = "true"
	s.Journal.Record = nil
	s.Journal.Records = map[string]*Record{SidecarKey(scene.ThePod): {ID: "s1", Policy: "sidecar-not-ready", Phase: PhaseExhausted}}
	s.Ledger = &ledger.Ledger{}
	s.Ledger.Stop("node-not-ready", "the quota is reached")
	d := node.Decide(s, scene.Noon)
	require.Equal(t, lifecycle.VerbRest, d.Verb)
	require.Equal(t, []string{"node-not-ready"}, d.Allow)
	require.Contains(t, d.Prune, SidecarKey(scene.ThePod))
	require.Contains(t, d.Consume, ResetKey)
	require.Contains(t, d.Message, "the stopped policies of this node start again: node-not-ready; the exhausted repair s1 of a sidecar was forgotten")

	s.Journal.Records[SidecarKey(scene.ThePod)].Phase = PhaseVerifying
	d = node.Decide(s, scene.Noon)
	require.NotContains(t, d.Prune, SidecarKey(scene.ThePod), "one that is under way goes on")
	require.Equal(t, []string{"node-not-ready"}, d.Allow)
}
