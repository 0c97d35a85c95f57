package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestSuccessorGoldens pins how a repair continues after its Node is gone. n1 is the Node of the
// new machine, if the provider confirms it.
func TestSuccessorGoldens(t *testing.T) {
	scene.Pin(t, "successor", orphaned, func(s *lifecycle.State, now time.Time) lifecycle.Decision {
		return node.DecideSuccessor(s, &s.Ledger.Orphans[0], now)
	}, scene.Render, nil)
}

func orphaned(g scene.Golden, t testing.TB) *lifecycle.State {
	t.Helper()
	return afterwards(t, g.State(t))
}

// afterwards gives the state of the orphan's old Node the Node of the new machine, if there is one.
func afterwards(t testing.TB, s *lifecycle.State) *lifecycle.State {
	t.Helper()
	o := &s.Ledger.Orphans[0]
	require.True(t, o.Gone(s.Node))
	s.Journal.Record = &o.Record
	s.Node = node.SuccessorOf(o, s.Replacement, []*corev1.Node{scene.Bare("n2"), s.Node})
	return s
}

// TestSuccessorWithOneChange starts from a golden file and changes one thing.
func TestSuccessorWithOneChange(t *testing.T) {
	for name, c := range map[string]struct {
		golden string
		change func(*lifecycle.State)
		verb   lifecycle.Verb
		says   string
		ask    lifecycle.Ask
	}{
		"a new Node came, although none is needed": {"none-needed-recovered", func(s *lifecycle.State) {
			s.Replacement.Successors = []string{s.Node.Spec.ProviderID}
		}, lifecycle.VerbWait, "the machine was replaced, its Node is not well yet", lifecycle.Ask{}},
		"a new Node came and is never well, although none is needed": {"none-needed-too-late", func(s *lifecycle.State) {
			s.Replacement.Successors = []string{s.Node.Spec.ProviderID}
		}, lifecycle.VerbEnd, "the new machine's Node n1 is not healthy", lifecycle.Ask{}},
		"none is needed, and something is missing": {"none-needed-recovered", func(s *lifecycle.State) {
			s.Replacement.Missing = "Pod a/b has had no node since noon"
		}, lifecycle.VerbWait, "Pod a/b has had no node since noon", lifecycle.Ask{}},
		"none is needed, and the policy is gone": {"none-needed-recovered", func(s *lifecycle.State) {
			s.Config.Policies = nil
		}, lifecycle.VerbWait, "", lifecycle.Ask{}},
		"it waits, and the last answer is a while old": {"none-needed-and-waits", func(s *lifecycle.State) {
			s.Replacement.At = scene.Noon.Add(-node.AskEvery)
		}, lifecycle.VerbWait, node.NoneNeeded, lifecycle.Ask{Replacement: true}},
		"none is needed, and nothing is queried after the end": {"none-needed-recovered", func(s *lifecycle.State) {
			s.Replacement.At = scene.Noon.Add(-node.AskEvery)
		}, lifecycle.VerbEnd, node.NoneNeeded, lifecycle.Ask{}},
		"the new machine is well, and nothing is queried after the end": {"recovered", func(s *lifecycle.State) {
			s.Replacement.At = scene.Noon.Add(-node.AskEvery)
		}, lifecycle.VerbEnd, "", lifecycle.Ask{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/successor/" + c.golden + ".input.yaml"}.State(t)
			c.change(s)
			s = afterwards(t, s)
			d := node.DecideSuccessor(s, &s.Ledger.Orphans[0], scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Contains(t, d.Message, c.says)
			require.Equal(t, c.ask, d.Ask)
		})
	}
}

// TestSameMachineDoesNotCountAsSuccessor: a Node that was only deleted and registered again is the
// same machine.
func TestSameMachineDoesNotCountAsSuccessor(t *testing.T) {
	o := &ledger.Orphan{Node: "n1", UID: "old", ProviderID: "civo://n1", Record: Record{Intent: &Intent{ID: "r1-2-1", At: scene.Noon}}}
	said := &Replacement{Asked: Asked{Intent: "r1-2-1", At: scene.Noon.Add(time.Second)}, Successors: []string{"civo://n1", "civo://n2"}}
	again, another := scene.Bare("n1"), scene.Bare("n2")
	require.True(t, o.Gone(again), "registered again, it is another Node")
	require.Nil(t, node.SuccessorOf(o, said, []*corev1.Node{again}))
	require.Equal(t, another, node.SuccessorOf(o, said, []*corev1.Node{again, another}))
	require.Equal(t, another, node.SuccessorOf(o, said, []*corev1.Node{another, again}))
	require.Nil(t, node.SuccessorOf(o, nil, []*corev1.Node{another}), "nobody said which machine it is")
	earlier := *said
	earlier.Intent = "r1-1-1"
	require.Nil(t, node.SuccessorOf(o, &earlier, []*corev1.Node{another}), "the answer is about another attempt")
	o.UID = string(another.UID)
	require.Nil(t, node.SuccessorOf(o, said, []*corev1.Node{another}), "the old Node with another provider ID")
	o.UID = string(again.UID)
	require.False(t, o.Gone(again))
	require.True(t, o.Gone(nil))
}

// TestProviderIsAskedAgainInTime: Drydock queries the provider again after askEvery, but at once if
// the last answer is from the future.
func TestProviderIsAskedAgainInTime(t *testing.T) {
	for name, c := range map[string]struct {
		asked time.Time
		again bool
	}{
		"now":              {scene.Noon, false},
		"not long ago":     {scene.Noon.Add(-node.AskEvery + 1), false},
		"long enough ago":  {scene.Noon.Add(-node.AskEvery), true},
		"by another clock": {scene.Noon.Add(time.Second), true},
	} {
		s := scene.Golden{Input: "testdata/successor/waits-for-readiness.input.yaml"}.State(t)
		s.Replacement.At = c.asked
		o := &s.Ledger.Orphans[0]
		s.Journal.Record = &o.Record
		require.Equal(t, c.again, node.DecideSuccessor(s, o, scene.Noon).Ask.Replacement, name)
	}
}

// TestAnswerOfTheProviderIsGoodForItsTime: an objection is valid until the time at which the
// provider wants the next query.
func TestAnswerOfTheProviderIsGoodForItsTime(t *testing.T) {
	conf := scene.LimitsAlone()
	plan := []Step{{Name: "reboot", Attempts: 1}}
	for name, c := range map[string]struct {
		age     time.Duration
		trouble string
		good    bool
	}{
		"just now":               {0, "", true},
		"at its end":             {node.SurveyFor, "", true},
		"too old":                {node.SurveyFor + 1, "", false},
		"from the future":        {-1, "", false},
		"trouble":                {time.Minute, "no quota", true},
		"trouble at its end":     {5 * time.Minute, "no quota", true},
		"trouble that is over":   {5*time.Minute + 1, "no quota", false},
		"trouble soon asked for": {node.SurveyFor + 1, "no quota", true},
	} {
		v := &Survey{Step: plan[0].On(), At: scene.Noon.Add(-c.age), Trouble: c.trouble, Again: 5 * time.Minute}
		s := &lifecycle.State{Config: conf, Survey: v}
		got := node.SurveyOf(s, &lifecycle.Candidate{State: s, Now: scene.Noon, Policy: &Policy{Plan: plan}, Step: StepRef{Name: "reboot", Attempt: 1}})
		require.Equal(t, c.good, got == v, name)
	}
}
