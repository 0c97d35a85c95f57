package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/testing/scene"
)

func planConfig() *Config {
	c := scene.LimitsAlone()
	c.Policies = []*Policy{{Name: "p", Mode: ModeEnforce, Plan: []Step{{Name: "reboot"}, {Name: "replace"}}}}
	return c
}

// TestAnInterruptedRepairIsRemembered: the plan continues when the machine registers again. The
// repair must be a node's, the machine must have a providerID, and the plan must still have the
// step.
func TestAnInterruptedRepairIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *ledger.Slot)
		step   string
	}{
		"its first step":        {func(*ledger.Slot) {}, "reboot"},
		"its last step":         {func(s *ledger.Slot) { s.Attempt = "r1-1-2" }, "replace"},
		"of a location":         {func(s *ledger.Slot) { s.Kind = KindLocation }, ""},
		"without a providerID":  {func(s *ledger.Slot) { s.ProviderID = "" }, ""},
		"of a policy that left": {func(s *ledger.Slot) { s.Policy = "q" }, ""},
		"of no attempt":         {func(s *ledger.Slot) { s.Attempt = "r1-withheld" }, ""},
		"of a step that left":   {func(s *ledger.Slot) { s.Attempt = "r1-2-1" }, ""},
		"of no step":            {func(s *ledger.Slot) { s.Attempt = "r1--1-1" }, ""},
	} {
		s := ledger.Slot{Node: "n1", UID: "u1", ProviderID: "civo://1", Policy: "p", Repair: "r1", Attempt: "r1-0-1"}
		c.change(&s)
		l, n := &ledger.Ledger{}, nodeOf("u2", "civo://1")
		require.Equal(t, c.step != "", l.Interrupted(planConfig(), s, scene.Noon), name)
		cure := l.LastCure(n, "p")
		require.Equal(t, c.step != "", cure != nil, name)
		if cure != nil {
			require.Equal(t, c.step, cure.Step.Name, name)
			require.True(t, cure.Relapsed, name)
		}
	}
}

// TestAnExhaustedPlanIsRemembered: this is so for an alert's repair that has issued a step. A
// repair for a person's request does not use up the plan.
func TestAnExhaustedPlanIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *Record)
		kept   bool
	}{
		"of an alert":       {func(*Record) {}, true},
		"of a request":      {func(r *Record) { r.Cause = Cause{Request: "remediation/reboot"} }, false},
		"without an intent": {func(r *Record) { r.Intent = nil }, false},
		"withheld":          {func(r *Record) { r.Intent.ID = "r1-withheld" }, false},
	} {
		r := &Record{ID: "r1", Policy: "p", Cause: Cause{Alert: "a"}, Phase: PhaseExhausted, Since: scene.Noon, Step: StepRef{Name: "reboot", Attempt: 1}, Intent: &Intent{ID: "r1-0-1"}}
		c.change(r)
		l, n := &ledger.Ledger{}, nodeOf("u1", "civo://1")
		l.RanOut(n, r)
		require.Equal(t, c.kept, l.LastCure(n, "p") != nil, name)
	}
}

// TestTheLastCureOfAMachine: the cure may be stored under either name of the machine, and the later
// one by the policy counts.
func TestTheLastCureOfAMachine(t *testing.T) {
	n := nodeOf("u1", "") // under its UID and under its name
	cure := func(id, policy string, minutes int) ledger.Cure {
		return ledger.Cure{Repair: id, Policy: policy, At: scene.Noon.Add(time.Duration(minutes) * time.Minute)}
	}
	for want, cures := range map[string]map[string][]ledger.Cure{
		"":   {"u1": {cure("r9", "q", 9)}, "other": {cure("r8", "p", 8)}},
		"r1": {"u1": {cure("r1", "p", 1)}, "n1": {cure("r9", "q", 9)}},
		"r2": {"u1": {cure("r2", "p", 2)}, "n1": {cure("r1", "p", 1)}},
		"r3": {"u1": {cure("r2", "p", 2)}, "n1": {cure("r9", "q", 9), cure("r3", "p", 3)}},
		"r4": {"n1": {cure("r4", "p", 4)}},
	} {
		last := (&ledger.Ledger{Cures: cures}).LastCure(n, "p")
		if want == "" {
			require.Nil(t, last)
			continue
		}
		require.NotNil(t, last, want)
		require.Equal(t, want, last.Repair)
	}
}

// TestUnknownFieldsOfACureStayWithItsPolicy: a cure of another policy or another repair does not
// get them.
func TestUnknownFieldsOfACureStayWithItsPolicy(t *testing.T) {
	n := nodeOf("u1", "civo://1")
	last := StepRef{Name: "reboot", Attempt: 1}
	for policy, want := range map[string]ledger.Unknown{"p": `{"lane":1}`, "q": ""} {
		l := &ledger.Ledger{Cures: map[string][]ledger.Cure{"civo://1": {{Repair: "r1", Policy: "p", At: scene.Noon, Unknown: `{"lane":1}`}}}}
		l.Cured("civo://1", &Entry{ID: "r1", Policy: policy, Outcome: OutcomeRecovered, Ended: scene.Noon, Steps: Attempts{last.Issued()}, Last: &last}, nil)
		require.Equal(t, want, l.LastCure(n, policy).Unknown, policy)
	}
}

// TestBlindTimeCountsUntilTheEndOfTheQuestion: the blind time after the end of the period does not
// count.
func TestBlindTimeCountsUntilTheEndOfTheQuestion(t *testing.T) {
	l := &ledger.Ledger{Unseen: []ledger.Span{{From: scene.Noon, To: scene.Noon.Add(time.Hour)}}}
	require.Equal(t, time.Minute, l.UnseenIn(scene.Noon, scene.Noon.Add(time.Minute)))
}

// TestAnEntryThatWasNoCureStaysForTheWindow: limits.repairsWindow may be longer than any relapse
// window.
func TestAnEntryThatWasNoCureStaysForTheWindow(t *testing.T) {
	c := planConfig()
	c.Limits.RepairsWindow = 96 * time.Hour
	for relapsed, most := range map[bool]time.Duration{true: 96*time.Hour + PendingFor, false: PendingFor} {
		for _, early := range []time.Duration{1, 0} {
			l := &ledger.Ledger{Cures: map[string][]ledger.Cure{"m": {{Repair: "r1", Policy: "p", At: scene.Noon.Add(early - most), Relapsed: relapsed}}}}
			l.Prune(c, scene.Noon)
			require.Len(t, l.Cures, int(early), "relapsed: %v", relapsed)
		}
	}
}

// TestARelapseInTheHistoryIsKnown: a rebuilt ledger has it.
func TestARelapseInTheHistoryIsKnown(t *testing.T) {
	last := StepRef{Name: "reboot", Attempt: 1}
	for outcome, want := range map[Outcome]bool{OutcomeRecovered: false, OutcomeRelapsed: true} {
		c := ledger.CureOf(Entry{ID: "r1", Policy: "p", Outcome: outcome, Steps: Attempts{last.Issued()}, Last: &last})
		require.NotNil(t, c, outcome)
		require.Equal(t, want, c.Relapsed, outcome)
	}
}

// TestAnotherFailureOfAStoppedPolicyCounts: only a success lets the policy continue.
func TestAnotherFailureOfAStoppedPolicyCounts(t *testing.T) {
	l := &ledger.Ledger{}
	for i := range 4 {
		require.True(t, l.Finished("p", fmt.Sprint("r", i), OutcomeExhausted))
	}
	require.Equal(t, 4, l.Status.Exhausted["p"])
	require.False(t, l.Finished("p", "r9", OutcomeCancelled))
	require.True(t, l.Failing("p"))
}

// TestWhichEndReplacesWhich: a new end replaces an end of the same policy, and a new cancel a
// cancel of the same alert.
func TestWhichEndReplacesWhich(t *testing.T) {
	c, n := endsConfig(), nodeOf("u1", "civo://1")
	end := ledger.End{Repair: "r1", Policy: "p", At: scene.Noon}
	cancel := ledger.End{Repair: "r1", Policy: "p", At: scene.Noon, Alert: "a", Seen: scene.Noon}
	for name, of := range map[string]struct {
		first, then ledger.End
		kept        int
	}{
		"two ends of a policy":           {end, ledger.End{Repair: "r2", Policy: "p", At: scene.Noon}, 1},
		"ends of two policies":           {end, ledger.End{Repair: "r2", Policy: "q", At: scene.Noon}, 2},
		"an end and a cancel":            {end, cancel, 2},
		"two cancels of an alert":        {cancel, ledger.End{Repair: "r2", Policy: "q", At: scene.Noon, Alert: "a", Seen: scene.Noon}, 1},
		"cancels of two alerts":          {cancel, ledger.End{Repair: "r2", Policy: "p", At: scene.Noon, Alert: "b", Seen: scene.Noon}, 2},
		"an earlier end of the policy":   {end, ledger.End{Repair: "r0", Policy: "p", At: scene.Noon.Add(-time.Minute)}, 2},
		"an earlier cancel of the alert": {cancel, ledger.End{Repair: "r0", Policy: "p", At: scene.Noon.Add(-time.Minute), Alert: "a", Seen: scene.Noon}, 2},
	} {
		l := &ledger.Ledger{}
		l.Ended(c, n, of.first, scene.Noon)
		l.Ended(c, n, of.then, scene.Noon)
		require.Len(t, l.Ends["civo://1"], of.kept, name)
		require.Empty(t, l.Ends["civo://1"][0].UID, "the providerID names the machine")
	}
	l := &ledger.Ledger{Ends: map[string][]ledger.End{"civo://1": {{Repair: "r1", Policy: "p", At: scene.Noon, Unknown: `{"lane":1}`}, {Repair: "r1", Policy: "q", At: scene.Noon, Unknown: `{"lane":2}`}}}}
	l.Ended(c, n, end, scene.Noon)
	require.Equal(t, ledger.Unknown(`{"lane":1}`), l.Ends["civo://1"][1].Unknown, "its own unknown fields, not those of another policy")
}

// TestEntriesUnderANodesName: such entries need a UID. For a Node without a providerID they count
// for the window.
func TestEntriesUnderANodesName(t *testing.T) {
	window := 24 * time.Hour
	ends := func(of *corev1.Node, e ledger.End, at time.Time) int {
		e.Alert, e.Repair, e.At = "a", "r1", scene.Noon
		return len((&ledger.Ledger{Ends: map[string][]ledger.End{"n1": {e}}}).EndsOf(of, at, window))
	}
	require.Equal(t, 1, ends(nodeOf("u2", ""), ledger.End{UID: "u1"}, scene.Noon.Add(window-1)))
	require.Zero(t, ends(nodeOf("u2", ""), ledger.End{UID: "u1"}, scene.Noon.Add(window)))
	require.Zero(t, ends(nodeOf("u2", ""), ledger.End{}, scene.Noon), "the name is another machine's providerID")
	l := &ledger.Ledger{Ends: map[string][]ledger.End{"": {{Repair: "r1", Policy: "p", At: scene.Noon}}}}
	require.Empty(t, (&ledger.Ledger{}).EndsOf(nodeOf("u1", ""), scene.Noon, window))
	require.Nil(t, l.CancelKnown(nodeOf("u1", ""), "", scene.Noon, window), "an end is no cancel")

	later := scene.Noon.Add(time.Minute)
	for _, at := range [][]time.Time{{scene.Noon, later}, {later, scene.Noon}} {
		l := &ledger.Ledger{Ends: map[string][]ledger.End{"n1": {{Alert: "a", UID: "u1", Repair: "r1", At: at[0]}, {Alert: "a", UID: "u1", Repair: "r2", At: at[1]}}}}
		require.Equal(t, later, l.CancelKnown(nodeOf("u1", ""), "a", scene.Noon, window).At, "the last one")
	}
}

// TestACancelIsForgottenByItsAlert: a call without an alert removes no end.
func TestACancelIsForgottenByItsAlert(t *testing.T) {
	l := &ledger.Ledger{Ends: map[string][]ledger.End{"civo://1": {{Repair: "r1", Policy: "p"}, {Repair: "r1", Alert: "a"}, {Repair: "r1", Alert: "b"}}}}
	n := nodeOf("u1", "civo://1")
	require.False(t, l.Uncancel(n, ""))
	require.False(t, l.Uncancel(n, "c"))
	require.True(t, l.Uncancel(n, "a"))
	require.Len(t, l.Ends["civo://1"], 2)
}

// TestAFoundEndTakesRoom: room shrinks only for an end that the ledger lacks and that fits. An end
// that replaces another one takes no room.
func TestAFoundEndTakesRoom(t *testing.T) {
	c, n := endsConfig(), nodeOf("u1", "civo://1")
	e := ledger.End{Repair: "r1", Policy: "p", At: scene.Noon, Outcome: OutcomeRecovered}
	size := len(EncodeJSON(map[string]ledger.End{"civo://1": e}))
	for name, of := range map[string]struct {
		had         []ledger.End
		room, after int
		found       bool
	}{
		"it fits exactly":           {nil, size, 0, true},
		"it fits":                   {nil, size + 1, 1, true},
		"it does not fit":           {nil, size - 1, size - 1, false},
		"it is known":               {[]ledger.End{e}, 2 * size, 2 * size, false},
		"it replaces one":           {[]ledger.End{{Repair: "r0", Policy: "p", At: scene.Noon.Add(-time.Minute)}}, 0, 0, true},
		"beside another's":          {[]ledger.End{{Repair: "r0", Policy: "q", At: scene.Noon}}, size, 0, true},
		"beside another's, no room": {[]ledger.End{{Repair: "r0", Policy: "q", At: scene.Noon}}, 0, 0, false},
	} {
		l, room := &ledger.Ledger{Ends: map[string][]ledger.End{"civo://1": of.had}}, of.room
		require.Equal(t, of.found, l.Found(c, n, e, &room, scene.Noon), name)
		require.Equal(t, of.after, room, name)
		require.Equal(t, of.found || name == "it is known", strings.Contains(EncodeJSON(l.Ends["civo://1"]), `"r1"`), name)
	}
}

// TestWhatIsLackingOfAFullLedger: if a machine has the most cancels, an end is still recorded, and
// the cancel of one more alert is not.
func TestWhatIsLackingOfAFullLedger(t *testing.T) {
	c, n := endsConfig(), nodeOf("u1", "civo://1")
	var cancels []ledger.End
	for i := range ledger.CancelsMost {
		cancels = append(cancels, ledger.End{Repair: "r1", Alert: fmt.Sprint(i), At: scene.Noon, Seen: scene.Noon})
	}
	cancel := ledger.End{Repair: "r1", Alert: "one more", At: scene.Noon, Seen: scene.Noon}
	l := &ledger.Ledger{Ends: map[string][]ledger.End{"civo://1": cancels}}
	require.True(t, l.Lacks(c, n, ledger.End{Repair: "r1", Policy: "p", At: scene.Noon}, scene.Noon))
	require.False(t, l.Lacks(c, n, cancel, scene.Noon))
	l.Ends["civo://1"] = append([]ledger.End{{Repair: "r1", Policy: "p", At: scene.Noon}}, cancels[1:]...)
	require.True(t, l.Lacks(c, n, cancel, scene.Noon), "ends take no cancel's place")
}

// TestEndsAreForgottenAtTheirExactTime: the time of a cancel counts from when its alert was last on
// the Node.
func TestEndsAreForgottenAtTheirExactTime(t *testing.T) {
	c := endsConfig()
	for _, early := range []time.Duration{1, 0} {
		l := &ledger.Ledger{Ends: map[string][]ledger.End{
			"m": {{Repair: "r1", Policy: "p", At: scene.Noon.Add(early - time.Hour)}}, "o": {{Repair: "r1", Alert: "a", At: scene.Noon.Add(-99 * time.Hour), Seen: scene.Noon.Add(early - 24*time.Hour)}},
		}}
		l.PruneEnds(c, scene.Noon)
		require.Len(t, l.Ends, 2*int(early))
	}
}
