package node_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// goneMachine returns the state of a replacement under way: the provider confirms that the machine
// is gone, and the Node still exists.
func goneMachine(t *testing.T) *lifecycle.State {
	t.Helper()
	text, err := os.ReadFile("testdata/decide/replace-old-machine-gone.input.yaml")
	require.NoError(t, err)
	return scene.Read(t, text).State(t)
}

// TestOutOfServiceIsHeld: the mark is a side effect like any other. It needs an answer about this
// very attempt, and a person's mark prevents it.
func TestOutOfServiceIsHeld(t *testing.T) {
	annotate := func(key, value string) func(*lifecycle.State) {
		return func(s *lifecycle.State) { s.Node.Annotations[key] = value }
	}
	for name, c := range map[string]struct {
		change func(*lifecycle.State)
		says   string
	}{
		"paused":                    {annotate(PauseKey, "true"), "Paused"},
		"paused by nobody knows":    {annotate(PauseKey, "perhaps"), "Paused"},
		"break-glass":               {annotate(BreakGlassKey, "why"), "Paused"},
		"excluded":                  {func(s *lifecycle.State) { s.Node.Labels[ExcludeLabel] = "" }, "Excluded"},
		"an autoscaler takes it":    {func(s *lifecycle.State) { s.Node.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}} }, "NodeLeaving"},
		"observe mode":              {func(s *lifecycle.State) { s.Config.Policies[0].Mode = ModeObserve }, "Observing"},
		"the policy is off":         {func(s *lifecycle.State) { s.Config.Policies[0].Mode = ModeOff }, "off"},
		"the policy is gone":        {func(s *lifecycle.State) { s.Config.Policies = nil }, "off"},
		"an answer from before":     {func(s *lifecycle.State) { s.Replacement.At = scene.Noon.Add(-26 * time.Hour) }, "not been asked"},
		"about an earlier attempt":  {func(s *lifecycle.State) { s.Replacement.Intent = "abc234-1-1" }, "not been asked"},
		"another Node of that name": {func(s *lifecycle.State) { s.Node.UID = "another" }, "no new instance"},
		"the machine is there":      {func(s *lifecycle.State) { s.Replacement.MachineGone = false }, "no new instance"},
		"Alertmanager is silent":    {func(s *lifecycle.State) { s.Snapshot.AskedAt = scene.Noon.Add(-time.Minute) }, "no new instance"},
		"leases are not counted":    {func(s *lifecycle.State) { s.Heartbeats = nil }, "no new instance"},
		"no ledger":                 {func(s *lifecycle.State) { s.Ledger = nil }, "no new instance"},
	} {
		t.Run(name, func(t *testing.T) {
			s := goneMachine(t)
			require.True(t, node.Decide(s, scene.Noon).Taint, "the control")
			s = goneMachine(t)
			c.change(s)
			d := node.Decide(s, scene.Noon)
			require.False(t, d.Taint)
			require.Contains(t, d.Message, c.says)
			if d.Record != nil {
				require.Empty(t, d.Record.Undo[1:], "nothing was done")
				s.Journal.Record = d.Record
				require.Nil(t, node.Decide(s, scene.Noon).Record, "it is written once")
			}
		})
	}
}

// TestOnlyAMachineThatIsGoneOrOffIsMarked: an answer about the machine counts for no other step.
func TestOnlyAMachineThatIsGoneOrOffIsMarked(t *testing.T) {
	for name, r := range Shipped() {
		if !r.Once || r.Target != "" {
			continue
		}
		s := goneMachine(t)
		s.Config.Policies[0].Plan[2].Name, s.Config.Provided[name] = name, true
		s.Journal.Record.Step.Name, s.Journal.Record.Done[2] = name, Attempt{Name: name, Number: 1}
		require.Equal(t, r.Replaces || r.PowersOff, node.Decide(s, scene.Noon).Taint, name)
	}
}

// TestOffIsThisBootAndNow: an answer that the machine is off is valid for a short time, and only
// while the Node shows the boot before the step.
func TestOffIsThisBootAndNow(t *testing.T) {
	text, err := os.ReadFile("testdata/decide/power-off-proven.input.yaml")
	require.NoError(t, err)
	for name, change := range map[string]func(*lifecycle.State){
		"an old answer":         func(s *lifecycle.State) { s.Replacement.At = scene.Noon.Add(-31 * time.Second) },
		"an answer from ahead":  func(s *lifecycle.State) { s.Replacement.At = scene.Noon.Add(time.Second) },
		"another boot":          func(s *lifecycle.State) { s.Node.Status.NodeInfo.BootID = "boot2" },
		"no boot ID":            func(s *lifecycle.State) { s.Node.Status.NodeInfo.BootID, s.Journal.Record.Intent.BootID = "", "" },
		"another Node":          func(s *lifecycle.State) { s.Node.UID = "another" },
		"the node is Ready":     func(s *lifecycle.State) { s.Node.Status.Conditions[0].Status = corev1.ConditionTrue },
		"it is on":              func(s *lifecycle.State) { s.Replacement.MachineGone = false },
		"about another attempt": func(s *lifecycle.State) { s.Replacement.Intent = "abc234-0-2" },
		"asked before the call": func(s *lifecycle.State) { s.Replacement.At = s.Journal.Record.Intent.At.Add(-time.Second) },
		"marked, and taken away": func(s *lifecycle.State) {
			s.Journal.Record.Undo = []Undo{{Kind: UndoTaint, Key: OutOfServiceTaint, BootID: "boot1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, text).State(t)
			require.True(t, node.Decide(s, scene.Noon).Taint, "the control")
			s = scene.Read(t, text).State(t)
			change(s)
			require.False(t, node.Decide(s, scene.Noon).Taint)
		})
	}
}
