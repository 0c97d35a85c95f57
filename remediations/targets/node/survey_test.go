package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestAnObjectionHoldsItsStep: the provider, or another repair system, objects to a step. The
// objection holds only the step and the provider that it is about, and passes over a step only if
// the provider itself objects.
func TestAnObjectionHoldsItsStep(t *testing.T) {
	const machines = `
policy: {plan: [reboot continueUnreachable, drain, replace]}
provided: [reboot, drain, replace]
survey: {step: reboot, trouble: no quota}
`
	const hosts = `
policy: {plan: [restart-kubelet, reboot]}
provided: [restart-kubelet, reboot]
survey: {step: restart-kubelet, trouble: no quota}
`
	for name, c := range map[string]struct {
		scene  string
		change func(*lifecycle.State)
		verb   lifecycle.Verb
		reason Reason
		says   string
		passed bool
	}{
		"the provider objects": {
			machines, func(*lifecycle.State) {}, lifecycle.VerbHold, ReasonProviderAbsent, "no quota", false,
		},
		"the objection is about another step": {
			machines, func(s *lifecycle.State) { s.Survey.Step = StepOn{Name: "replace"} }, lifecycle.VerbLook, "", "checking once more", false,
		},
		"another provider objects": {
			machines, func(s *lifecycle.State) { s.Survey.Provider = "another" }, lifecycle.VerbLook, "", "checking once more", false,
		},
		"the objection is from the future": {
			machines, func(s *lifecycle.State) { s.Survey.At = scene.Noon.Add(1) }, lifecycle.VerbLook, "", "checking once more", false,
		},
		"nobody is asked about this step": {
			machines, func(s *lifecycle.State) {
				s.Config.Policies[0].Plan, s.Survey.Step = s.Config.Policies[0].Plan[1:], StepOn{Name: "drain"}
			}, lifecycle.VerbIssue, "", "drain n1", false,
		},
		"no provider answers": {
			machines, func(s *lifecycle.State) {
				s.Survey.Fleetwide, s.Survey.Unreached = true, true
			}, lifecycle.VerbHold, ReasonProviderUnreachable, "the provider of the step reboot has given no usable answer about any machine", false,
		},
		"the node's provider does not answer": {
			machines, func(s *lifecycle.State) {
				civo := scene.Serving("civo", "civo://", "")
				s.Config.Providers = []Provider{civo}
				s.Survey.Provider, s.Survey.Fleetwide, s.Survey.Unreached = "civo", true, true
			}, lifecycle.VerbHold, ReasonProviderUnreachable, "the provider civo has given no usable answer about any machine", false,
		},
		"another repair system does not answer": {
			machines, func(s *lifecycle.State) {
				s.Survey.Reason, s.Survey.Fleetwide, s.Survey.Unreached = ReasonNodeUnderRepair, true, true
			}, lifecycle.VerbHold, ReasonNodeUnderRepair, "no quota", false,
		},
		"the provider objects to a step of the host": {
			hosts, func(*lifecycle.State) {}, lifecycle.VerbHold, ReasonProviderAbsent, "restart-kubelet is passed over: no quota", true,
		},
		"the provider objects to the only step": {
			hosts, func(s *lifecycle.State) { s.Config.Policies[0].Plan = s.Config.Policies[0].Plan[:1] }, lifecycle.VerbHold, ReasonProviderAbsent, "no quota", false,
		},
		"another repair system objects to a step of the host": {
			hosts, func(s *lifecycle.State) { s.Survey.Reason = ReasonNodeUnderRepair }, lifecycle.VerbHold, ReasonNodeUnderRepair, "no quota", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Read(t, []byte(c.scene)).State(t)
			c.change(s)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, c.verb, d.Verb, d.Message)
			require.Equal(t, c.reason, d.Reason, d.Message)
			require.Regexp(t, "^"+c.says, d.Message)
			require.Equal(t, c.passed, d.Record != nil && len(d.Record.Passed) > 0)
		})
	}
}

// TestAStepIsPassedOverForAMachineThatCannotBeReached: only if the plan allows it for the step, and
// if each answer or call of the last minutes shows it.
func TestAStepIsPassedOverForAMachineThatCannotBeReached(t *testing.T) {
	const answers, calls = "unreachable-alone", "unreachable-calls-alone"
	forbidden := func(s *lifecycle.State) { s.Config.Policies[0].Plan[0].ContinueUnreachable = false }
	since := func(age time.Duration) func(s *lifecycle.State) {
		return func(s *lifecycle.State) { s.Journal.Record.Since = scene.Noon.Add(-age) }
	}
	for name, c := range map[string]struct {
		golden string
		change func(*lifecycle.State)
		passed bool
	}{
		"ten minutes of answers":                          {answers, func(*lifecycle.State) {}, true},
		"ten minutes of answers, and the plan forbids it": {answers, forbidden, false},
		"five calls":                          {calls, func(*lifecycle.State) {}, true},
		"five calls, and the plan forbids it": {calls, forbidden, false},
		"five calls of an earlier step": {calls, func(s *lifecycle.State) {
			p := s.Config.Policies[0] // whose first step this installation can no longer carry out
			p.Plan = append([]Step{{Name: "restart-kubelet", Attempts: 1}}, p.Plan...)
			s.Journal.Record.Step.Name = "restart-kubelet"
		}, false},
		"five calls, and no answer since": {calls, func(s *lifecycle.State) { s.Survey = nil }, true},
		"five calls, and now the provider objects for every machine": {calls, func(s *lifecycle.State) {
			s.Survey.Fleetwide, s.Survey.Unreached = true, false
		}, true},
		"five calls, the last one just recent enough": {calls, since(lifecycle.CallAgain + node.UnaskedFor), true},
		"five calls, the last one too long ago":       {calls, since(lifecycle.CallAgain + node.UnaskedFor + 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/decide/" + c.golden + ".input.yaml"}.State(t)
			c.change(s)
			d := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbHold, d.Verb, d.Message)
			require.Equal(t, c.passed, d.Record != nil && len(d.Record.Passed) > 0, d.Message)
		})
	}
}

// TestSinceWhenAMachineAloneIsUnreachable: the hold on record continues only if it is of the same
// step, and if there was no gap between the answers. Otherwise the time counts from the last
// answer.
func TestSinceWhenAMachineAloneIsUnreachable(t *testing.T) {
	asked, began := scene.Noon.Add(-time.Second), scene.Noon.Add(-9*time.Minute)
	until := func(at time.Time) func(*lifecycle.State) {
		return func(s *lifecycle.State) { s.Journal.Record.Hold.Until = &at }
	}
	for name, c := range map[string]struct {
		change func(*lifecycle.State)
		since  time.Time
	}{
		"nothing changes":                    {func(*lifecycle.State) {}, began},
		"there is no answer":                 {func(s *lifecycle.State) { s.Survey = nil }, time.Time{}},
		"the provider reaches the machine":   {func(s *lifecycle.State) { s.Survey.Unreached = false }, time.Time{}},
		"there is no record":                 {func(s *lifecycle.State) { s.Journal.Record = nil }, asked},
		"the record is at another step":      {func(s *lifecycle.State) { s.Journal.Record.Step.Attempt = 2 }, asked},
		"the record has no hold":             {func(s *lifecycle.State) { s.Journal.Record.Hold = nil }, asked},
		"the hold is not of this machine":    {func(s *lifecycle.State) { s.Journal.Record.Hold.Alone = false }, asked},
		"the hold has no end":                {func(s *lifecycle.State) { s.Journal.Record.Hold.Until = nil }, asked},
		"the hold begins after the answer":   {func(s *lifecycle.State) { s.Journal.Record.Hold.Since = asked.Add(time.Second) }, asked},
		"the answer came just soon enough":   {until(asked.Add(-node.UnaskedFor)), began},
		"the answer came after a longer gap": {until(asked.Add(-node.UnaskedFor - 1)), asked},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene.Golden{Input: "testdata/decide/unreachable-alone-not-for-long.input.yaml"}.State(t)
			s.Survey.At = asked
			c.change(s)
			got := node.AloneSince(s, &lifecycle.Candidate{State: s, Now: scene.Noon, Policy: s.Config.Policies[0], Step: StepRef{Name: "reboot", Attempt: 1}})
			require.Equal(t, c.since, got)
		})
	}
}

// TestAStepOfTheHostWithoutAProvider: the host is not one of those that Drydock reaches. A step of
// the host is passed over, but not the drain before it: nothing would follow the drain.
func TestAStepOfTheHostWithoutAProvider(t *testing.T) {
	for name, c := range map[string]struct {
		plan   []string
		passed Attempts
	}{
		"it is the first of two":      {[]string{"restart-kubelet", "reboot"}, Attempts{{Name: "restart-kubelet"}}},
		"it is the only one":          {[]string{"restart-kubelet"}, nil},
		"it is the one after a drain": {[]string{"drain", "restart-kubelet"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := scene.Serving("ssh", "ssh://", "")
			hosts.Steps = []string{"restart-kubelet", "reboot"}
			s := (&scene.Scene{Policy: scene.Policy{Plan: c.plan}, Provided: []string{"drain", "restart-kubelet", "reboot"}}).State(t)
			s.Config.Providers = []Provider{hosts}
			d := node.Decide(s, scene.Noon)
			require.Equal(t, lifecycle.VerbHold, d.Verb, d.Message)
			require.Equal(t, ReasonProviderAbsent, d.Reason, d.Message)
			require.NotNil(t, d.Record, d.Message)
			var passed Attempts
			for _, p := range d.Record.Passed {
				passed = append(passed, Attempt{Name: p.Name})
			}
			require.Equal(t, c.passed, passed)
		})
	}
}
