package backtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
)

// tenWell is a fleet of ten nodes that are well.
func tenWell() past {
	p := past{}
	for i := range 10 {
		p.at(midnight).Nodes = append(p.at(midnight).Nodes, nodeAt(fmt.Sprintf("n%02d", i), corev1.ConditionTrue, midnight.Add(-time.Hour)))
	}
	return p
}

// TestAHoldEndsWithItsNode, and so does a repair that only waited.
func TestAHoldEndsWithItsNode(t *testing.T) {
	t.Parallel()
	p := tenWell()
	p.ill("n03", at(18, 0), time.Time{})
	p.at(at(18, 17)).Gone = []string{"n03"}
	r := replay(t, optionsOf(t, dayConfig), p.moments(), midnight, at(28, 0))
	var longest time.Duration
	for _, h := range r.story.heldBy() {
		if h.Reason == remediations.ReasonOutsideWindow {
			longest = time.Duration(h.Longest)
		}
	}
	require.Equal(t, 10*time.Minute, longest.Round(time.Minute))
	for _, h := range r.story.byNode {
		require.False(t, h.Until.After(at(18, 17)), "%+v", h)
	}
	require.Len(t, of(r, "n03"), 1)
	require.Empty(t, of(r, "n03")[0].Steps)
	require.Equal(t, at(18, 17), of(r, "n03")[0].Over)
}

// TestAFaultThatIsHeldForDaysIsOne: its repairs end after a day, one after the other. A fault that
// the fleet holds has no repair at all.
func TestAFaultThatIsHeldForDaysIsOne(t *testing.T) {
	t.Parallel()
	p := tenWell()
	p.ill("n03", at(18, 0), time.Time{})
	o := optionsOf(t, strings.Replace(dayConfig, "  for: 2m", "  approval: true\n  for: 2m", 1))
	o.Config.Windows = nil
	r := replay(t, o, p.moments(), midnight, at(24*4, 0))
	require.Greater(t, len(of(r, "n03")), 1, "the control: it has several repairs")
	require.Equal(t, 1, r.answer("").Totals.OnlyHeld)

	p = tenWell()
	for i := range 8 {
		p.ill(fmt.Sprintf("n%02d", i), at(14, 0), at(14, 30))
	}
	storm := replay(t, optionsOf(t, dayConfig), p.moments(), midnight, at(24, 0))
	require.NotEmpty(t, storm.story.openings)
	require.Equal(t, 8, storm.answer("").Totals.OnlyHeld)
}

// TestANodeThatRegistersAgainHasItsAlerts: those that began before it came.
func TestANodeThatRegistersAgainHasItsAlerts(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]time.Time{"before the alert": at(10, 2), "while it fires": at(10, 6)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tenWell()
			p.ill("n01", at(10, 0), at(16, 0))
			p.at(gone).Gone = []string{"n01"}
			again := nodeAt("n01", corev1.ConditionUnknown, at(10, 30))
			again.UID = "uid-again"
			p.at(at(10, 30)).Nodes = append(p.at(at(10, 30)).Nodes, again)
			p.at(at(16, 0)).Nodes[0].UID = "uid-again"
			o := optionsOf(t, dayConfig)
			o.Curing = true
			r := replay(t, o, p.moments(), midnight, at(12, 0))
			require.NotEmpty(t, r.node)
			repairs := of(r, "n01")
			require.NotEmpty(t, repairs)
			last := repairs[len(repairs)-1]
			require.Len(t, last.Steps, 1)
			require.Equal(t, remediations.OutcomeRecovered, last.Outcome)
		})
	}
}

// TestASilenceOfThePastHoldsAsLong as it was recorded.
func TestASilenceOfThePastHoldsAsLong(t *testing.T) {
	t.Parallel()
	for name, silenced := range map[string]bool{"silenced": true, "not silenced, the control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tenWell()
			p.ill("n01", at(10, 0), at(16, 0))
			if silenced {
				p.at(at(10, 5)).Silences = []history.Silence{{Node: "n01"}}
				p.at(at(12, 0)).Silences = []history.Silence{{Node: "n01", Ended: true}}
			}
			r := replay(t, optionsOf(t, dayConfig), p.moments(), midnight, at(24, 0))
			repairs := of(r, "n01")
			require.Len(t, repairs, 1)
			require.NotEmpty(t, repairs[0].Steps)
			require.Equal(t, silenced, !repairs[0].Steps[0].At.Before(at(12, 0)))
			held := slices.ContainsFunc(r.story.heldBy(), func(h Held) bool { return h.Reason == remediations.ReasonSilenced })
			require.Equal(t, silenced, held)
		})
	}
}
