package lifecycle_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/targets/sidecar"
	"drydock.dev/drydock/remediations/testing/scene"
)

// explained is a decision with all candidates that it considered. For each candidate it has the
// guards' answers, and the guard that holds the candidate.
type explained struct {
	lifecycle.Decision
	answers [][]lifecycle.GuardAnswer
	held    []*lifecycle.GuardAnswer
}

func explain(s *lifecycle.State, decide func() lifecycle.Decision, unseen map[lifecycle.Source]string) explained {
	var e explained
	s.Asking = func(c *lifecycle.Candidate) {
		var held *lifecycle.GuardAnswer
		if reason, f := c.HeldBy(nil); f != nil {
			held = &lifecycle.GuardAnswer{Reason: reason, Message: f.Message}
		}
		e.answers, e.held = append(e.answers, c.Explain(unseen)), append(e.held, held)
	}
	e.Decision = decide()
	return e
}

// everyScene returns the explained decisions of all golden scenes, for all kinds of target.
func everyScene(t *testing.T, then func(t *testing.T, e explained, isNode bool)) {
	for _, g := range scene.GoldensIn(t, "../../targets/node/testdata/decide") {
		s := g.State(t)
		t.Run("node "+g.Name, func(t *testing.T) {
			then(t, explain(s, func() lifecycle.Decision { return node.Decide(s, scene.Noon) }, nil), true)
		})
	}
	for _, g := range scene.GoldensIn(t, "../../targets/location/testdata/decide") {
		s := g.LocationState(t)
		t.Run("location "+g.Name, func(t *testing.T) {
			then(t, explain(s.State, func() lifecycle.Decision { return location.Decide(s, scene.Noon) }, nil), false)
		})
	}
	for _, g := range scene.GoldensIn(t, "../../targets/sidecar/testdata/decide") {
		s := g.SidecarState(t)
		t.Run("sidecar "+g.Name, func(t *testing.T) {
			then(t, explain(s.State, func() lifecycle.Decision { return sidecar.Decide(s, scene.Noon) }, nil), false)
		})
	}
}

// agrees checks that the first guard that holds according to the explanation is the one that holds
// the candidate. For a node it must also be the decision's reason. Other kinds of target have
// checks of their own, which are not guards.
func agrees(t require.TestingT, e explained, isNode bool) {
	holds := func(want *lifecycle.GuardAnswer) func([]lifecycle.GuardAnswer) bool {
		return func(all []lifecycle.GuardAnswer) bool {
			first := lifecycle.FirstHold(all)
			return first != nil && first.Reason == want.Reason && strings.Contains(want.Message, first.Message)
		}
	}
	for i, held := range e.held {
		if held == nil {
			require.Nil(t, lifecycle.FirstHold(e.answers[i]))
		} else {
			require.True(t, holds(held)(e.answers[i]), held)
		}
	}
	switch {
	case len(e.answers) == 0:
	case e.Verb == lifecycle.VerbIssue:
		require.Nil(t, lifecycle.FirstHold(e.answers[len(e.answers)-1]))
	case isNode && e.Verb == lifecycle.VerbHold && slices.Contains(scene.DesignOrder, e.Reason):
		require.True(t, slices.ContainsFunc(e.answers, holds(&lifecycle.GuardAnswer{Reason: e.Reason, Message: e.Message})), "%s: %s", e.Reason, e.Message)
	}
}

// TestTheExplanationAgreesWithTheDecision: in every golden scene, Explain and the decision name the
// same guard.
func TestTheExplanationAgreesWithTheDecision(t *testing.T) {
	t.Parallel()
	held := map[Reason]bool{}
	everyScene(t, func(t *testing.T, e explained, isNode bool) {
		agrees(t, e, isNode)
		if e.Verb == lifecycle.VerbHold && len(e.answers) > 0 {
			held[e.Reason] = true
		}
	})
	for _, reason := range scene.DesignOrder {
		require.True(t, held[reason], "no scene is held by %s", reason)
	}
}

// TestTheExplanationAgreesWhateverIsWrong: Explain and the decision name the same guard, also if
// several guards hold the node at the same time.
func TestTheExplanationAgreesWhateverIsWrong(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		sc := scene.Read(t, []byte(everythingWrong))
		remedies := remediesOf(sc)
		for _, reason := range slices.Sorted(maps.Keys(remedies)) {
			if remedy := remedies[reason]; remedy != nil && rapid.Bool().Draw(rt, string(reason)) {
				remedy()
			}
		}
		s := sc.State(t)
		e := explain(s, func() lifecycle.Decision { return node.Decide(s, scene.Noon) }, nil)
		require.NotEmpty(rt, e.answers)
		agrees(rt, e, true)
	})
}

// TestEveryGuardSaysWhatItSaw: every guard has a message, both if it holds a repair and if not.
func TestEveryGuardSaysWhatItSaw(t *testing.T) {
	t.Parallel()
	said := make([]map[lifecycle.Standing]bool, len(lifecycle.Guards()))
	everyScene(t, func(t *testing.T, e explained, _ bool) {
		for _, answers := range e.answers {
			require.Len(t, answers, len(said))
			for i, a := range answers {
				if said[i] == nil {
					said[i] = map[lifecycle.Standing]bool{}
				}
				said[i][a.Standing] = true
				require.Equal(t, a.Standing == lifecycle.GuardOtherKind, a.Message == "", "%s: %q", a.Reason, a.Message)
			}
		}
	})
	for i, g := range lifecycle.Guards() {
		require.True(t, said[i][lifecycle.GuardPassed], "%s, row %d, lets nothing pass", g.Reason, i)
		require.True(t, said[i][lifecycle.GuardHolds], "%s, row %d, holds nothing", g.Reason, i)
	}
}

// TestWhatWasNotSeenIsNeverPassed: if a source was not read, no guard that reads it holds or
// passes.
func TestWhatWasNotSeenIsNeverPassed(t *testing.T) {
	t.Parallel()
	rests := map[lifecycle.Source][]Reason{
		lifecycle.OnAlerts: {ReasonAlertUnconfirmed, ReasonBlind, ReasonSilenced, ReasonInhibited, ReasonAlertResolved, ReasonClusterWide, ReasonCommonCause},
		lifecycle.OnLeases: {ReasonBlind},
		lifecycle.OnFleet:  {ReasonFleetUnhealthy, ReasonNodeUnderRepair, ReasonControlPlaneBusy, ReasonClusterWide, ReasonAtLimit, ReasonCommonCause},
		lifecycle.OnLedger: {ReasonFleetUnhealthy, ReasonNodeUnderRepair, ReasonCooldown, ReasonRepairsSpent, ReasonPolicyFailing, ReasonControlPlaneBusy, ReasonClusterWide, ReasonAtLimit, ReasonWritesDenied, ReasonStoreWentBack},
	}
	for source, reasons := range rests {
		s := scene.Read(t, []byte("{}")).State(t)
		e := explain(s, func() lifecycle.Decision { return node.Decide(s, scene.Noon) }, map[lifecycle.Source]string{source: "nobody may look"})
		require.Equal(t, lifecycle.VerbIssue, e.Verb, "with all of it seen, nothing holds the repair")
		var unseen []Reason
		for _, a := range e.answers[0] {
			if a.Standing == lifecycle.GuardNotSeen {
				require.Equal(t, "nobody may look", a.Message)
				unseen = append(unseen, a.Reason)
			}
		}
		for _, reason := range reasons {
			if reason != ReasonClusterWide || source == lifecycle.OnAlerts {
				require.Contains(t, append(unseen, ReasonClusterWide), reason, source)
			}
		}
		require.Subset(t, reasons, unseen, source)
	}
}

// TestASignWithoutAnAnswerDoesNotPassTheGuard: if a sign was not read, the result of NotWitnessed
// is "not seen", and not "passed".
func TestASignWithoutAnAnswerDoesNotPassTheGuard(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]lifecycle.Standing{
		`{policy: {witness: lease}}`:                                           lifecycle.GuardNotSeen,
		`{policy: {witness: lease}, read: {lease: {answer: ill}}}`:             lifecycle.GuardPassed,
		`{policy: {witness: lease}, read: {lease: {answer: well}}}`:            lifecycle.GuardHolds,
		`{policy: {witness: lease}, read: {lease: {answer: ill, asked: 10m}}}`: lifecycle.GuardNotSeen,
	} {
		s := scene.Read(t, []byte(text)).State(t)
		e := explain(s, func() lifecycle.Decision { return node.Decide(s, scene.Noon) }, nil)
		i := slices.IndexFunc(e.answers[0], func(a lifecycle.GuardAnswer) bool { return a.Reason == ReasonNotWitnessed })
		require.Equal(t, want, e.answers[0][i].Standing, text)
		for k, a := range e.answers[0] {
			require.True(t, k == i || a.Standing != lifecycle.GuardNotSeen, "%s reads no sign of the witness: %s", a.Reason, text)
		}
	}
}

// TestWithoutAPollNoAlertPassesAGuard: before the first poll, nothing is known about the alert.
func TestWithoutAPollNoAlertPassesAGuard(t *testing.T) {
	t.Parallel()
	for name, snapshot := range map[string]*alerts.Snapshot{"none": nil, "an empty one": {}} {
		s := scene.Read(t, []byte("{}")).State(t)
		var answers []lifecycle.GuardAnswer
		s.Asking = func(c *lifecycle.Candidate) {
			known, asked := *c.State, *c
			known.Snapshot, asked.State = snapshot, &known
			answers = asked.Explain(nil)
		}
		node.Decide(s, scene.Noon)
		var unseen []Reason
		for _, a := range answers {
			if a.Standing == lifecycle.GuardNotSeen {
				require.Equal(t, "no Alertmanager was asked", a.Message)
				unseen = append(unseen, a.Reason)
			}
		}
		require.Equal(t, []Reason{ReasonAlertUnconfirmed, ReasonBlind, ReasonSilenced, ReasonInhibited, ReasonAlertResolved, ReasonClusterWide, ReasonCommonCause}, unseen, name)
	}
}

// TestTheExplanationHasTheEndOfAHold, if it is known.
func TestTheExplanationHasTheEndOfAHold(t *testing.T) {
	t.Parallel()
	end := scene.Noon.Add(2 * time.Hour)
	for text, until := range map[string]*time.Time{
		`{node: {annotations: {drydock.dev/pause: "<now+2h> new disks"}}}`: &end,
		`{node: {annotations: {drydock.dev/pause: "true new disks"}}}`:     nil,
	} {
		s := scene.Read(t, []byte(text)).State(t)
		e := explain(s, func() lifecycle.Decision { return node.Decide(s, scene.Noon) }, nil)
		held := lifecycle.FirstHold(e.answers[0])
		require.NotNil(t, held, text)
		require.Equal(t, ReasonPaused, held.Reason)
		require.Equal(t, until, held.Until, text)
	}
}
