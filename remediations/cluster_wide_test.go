package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
)

// TestWhatIsAskedAboutAStep: a question about a step names what the plan says about it, and nothing
// else.
func TestWhatIsAskedAboutAStep(t *testing.T) {
	for _, s := range []StepOn{{Name: "reboot"}, {Name: "restart-unit", Unit: "x.service"}, {Name: "rollout-restart", DaemonSet: "kube-system/cni"}} {
		require.Equal(t, s, Step{Name: s.Name, Unit: s.Unit, DaemonSet: s.DaemonSet, Wait: time.Minute, Attempts: 2, Soft: true}.On())
	}
}

// TestEvidenceKeepsTheEndOfTheText, on one line and bounded.
func TestEvidenceKeepsTheEndOfTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 4000, -1).Draw(t, "text")
		got := EvidenceOf(text)
		require.LessOrEqual(t, len(got), MaxEvidence+len("…"))
		require.NotContains(t, got, "\n")
		require.Equal(t, got, Clip(got, len(got)+1))
	})
	require.Equal(t, "a | b", EvidenceOf("a\r\nb\n"))
}
