package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
)

// TestWhatIsAskedAboutAStep: Step.On has the step's name and the unit, DaemonSet or template of the
// plan, and nothing else.
func TestWhatIsAskedAboutAStep(t *testing.T) {
	for _, s := range []StepOn{{Name: "reboot"}, {Name: "restart-unit", Unit: "x.service"}, {Name: "rollout-restart", DaemonSet: "kube-system/cni"}} {
		require.Equal(t, s, Step{Name: s.Name, Unit: s.Unit, DaemonSet: s.DaemonSet, Wait: time.Minute, Attempts: 2, Soft: true}.On())
	}
}

// TestEvidenceKeepsTheEndOfTheText: EvidenceOf returns the end of a long text, as one line.
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
