package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/rescue/apiserver"
	"drydock.dev/drydock/remediations/testing/scene"
)

func requestConfig() *Config {
	gpu, _ := k8slabels.Parse("gpu")
	return &Config{
		Kinds: []*TargetKind{&apiserver.Kind},
		Mode:  ModeObserve, Provided: map[string]bool{"reboot": true, "drain": true, "replace": true},
		Policies: []*Policy{
			{Name: "gpu", Mode: ModeEnforce, NodeSelector: gpu, Labels: []string{"gpu_node"}, ProofFor: time.Minute, Plan: []Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 3}}},
			{Name: "unwanted", Mode: ModeOff, Plan: []Step{{Name: "reboot", Wait: time.Hour, Attempts: 1}}},
			{Name: "plain", Mode: ModeEnforce, Labels: []string{"node"}, Plan: []Step{{Name: "reboot", Wait: 5 * time.Minute, Attempts: 2}}},
			{Name: "drain", Mode: ModeEnforce},
			{Name: "replace", Mode: ModeEnforce},
			{Name: "control-plane", Mode: ModeEnforce, Kind: KindAPIServer, Plan: []Step{{Name: "restart-kubelet", Wait: time.Minute, Attempts: 1}}},
		},
	}
}

func TestRequestIsReadStrictly(t *testing.T) {
	c := requestConfig()
	for v, want := range map[string]string{
		"policy/plain": "policy/plain", "plain": "policy/plain", " plain ": "policy/plain", "remediation/reboot": "remediation/reboot",
		"reboot": "remediation/reboot", "policy/drain": "policy/drain", "drain": "policy/drain", "policy/replace": "policy/replace", "remediation/replace": "remediation/replace",
	} {
		got, err := c.ParseRequest(v)
		require.NoError(t, err, v)
		require.Equal(t, want, got, v)
	}
	for v, says := range map[string]string{
		"": "write policy/<name>", "true": "write policy/<name>", "policy/": "no policy", "policy/none": "no policy", "unwanted": "write policy/<name>",
		"policy/unwanted": "no policy", "control-plane": "write policy/<name>", "policy/control-plane": "only restarted for an alert", "remediation/mark-ready": "reboot, replace, restart-cni", "remediation/explode": "no remediation for nodes",
		"remediation/restart-kubelet": "a provider that it needs is not configured", "remediation/apply-cni": "the whole cluster", "replace": "both a policy and a remediation", "remediation/drain": "kubectl drain", "Reboot": "write policy/<name>", "policy/plain now": "no policy",
	} {
		_, err := c.ParseRequest(v)
		require.ErrorContains(t, err, says, v)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.String().Draw(t, "request")
		if got, err := c.ParseRequest(v); err == nil {
			again, err := c.ParseRequest(got)
			require.NoError(t, err)
			require.Equal(t, got, again)
		} else {
			require.Less(t, len(err.Error()), 400)
		}
	})
}

// TestRequestFollowsThePolicyOfTheNode: a requested step has the settings of the policy that
// selects the node, with one attempt.
func TestRequestFollowsThePolicyOfTheNode(t *testing.T) {
	c, n := requestConfig(), scene.Bare("n1")
	p := c.PolicyOf("remediation/reboot", n)
	require.Equal(t, []Step{{Name: "reboot", Wait: 5 * time.Minute, Attempts: 1}}, p.Plan)
	require.Equal(t, ModeEnforce, p.Mode)
	require.Equal(t, 2, c.Policies[2].Plan[0].Attempts, "the policy itself is as it was")
	n.Labels["gpu"] = "8"
	p = c.PolicyOf("remediation/reboot", n)
	require.Equal(t, []Step{{Name: "reboot", Wait: 40 * time.Minute, Attempts: 1}}, p.Plan, "a GPU node boots for longer, whoever asked")
	require.Equal(t, "gpu_node", p.Labels[0])
	require.Equal(t, time.Minute, p.ProofFor)
	c.Policies[0].Plan[0].Soft = true
	require.False(t, c.PolicyOf("remediation/reboot", n).Plan[0].Soft, "the only attempt cuts the power")
	require.True(t, c.Policies[0].Plan[0].Soft, "the policy itself is as it was")

	c.Policies = nil
	p = c.PolicyOf("remediation/reboot", n)
	require.Equal(t, ModeObserve, p.Mode, "no policy says otherwise")
	require.Equal(t, Reboot.Wait, p.Plan[0].Wait)
	require.Equal(t, RequestProofFor, p.ProofFor)
	require.Nil(t, c.PolicyOf("gpu", n))
}

// TestARequestOfWhatOnlyAPlanKnows: some steps need settings that only a plan has, for example a
// template. Without such a plan a request does nothing, not even the drain before the step.
func TestARequestOfWhatOnlyAPlanKnows(t *testing.T) {
	c, n := requestConfig(), scene.Bare("n1")
	template := Template{APIVersion: "machine-deletion-remediation.medik8s.io/v1alpha1", Kind: MachineDeletion, Namespace: "medik8s", Name: "t"}
	for name, step := range map[string]Step{
		"restart-unit": {Name: "restart-unit", Unit: "x.service", Attempts: 2}, "external": {Name: "external", Template: template, Attempts: 2},
		"external-replace": {Name: "external-replace", Template: template, Attempts: 2},
	} {
		require.Nil(t, c.PolicyOf("remediation/"+name, n), name)
		c.Policies[2].Plan = []Step{step}
		plan := c.PolicyOf("remediation/"+name, n).Plan
		require.Equal(t, step.On(), plan[len(plan)-1].On(), "the control")
	}
}

// TestARequestedReplacementIsDrainedFirst: a drain comes before a requested replacement. It has the
// settings of the plan with the replacement, or the defaults.
func TestARequestedReplacementIsDrainedFirst(t *testing.T) {
	c, n := requestConfig(), scene.Bare("n1")
	byDefault := Step{Name: "drain", Timeout: 30 * time.Minute, Attempts: 1}
	require.Equal(t, []Step{byDefault, {Name: "replace", Wait: Replace.Wait, Attempts: 1}}, c.PolicyOf("remediation/replace", n).Plan)

	c.Policies[2].Plan = append(c.Policies[2].Plan, Step{Name: "replace", Wait: time.Hour, Attempts: 2})
	require.Equal(t, []Step{byDefault, {Name: "replace", Wait: time.Hour, Attempts: 1}}, c.PolicyOf("remediation/replace", n).Plan)

	own := Step{Name: "drain", Timeout: time.Minute, ContinueOnTimeout: true, Attempts: 1}
	c.Policies[2].Plan = []Step{own, {Name: "replace", Wait: time.Hour, Attempts: 2}}
	require.Equal(t, []Step{own, {Name: "replace", Wait: time.Hour, Attempts: 1}}, c.PolicyOf("remediation/replace", n).Plan, "a person says otherwise")
	require.Len(t, c.PolicyOf("remediation/reboot", n).Plan, 1, "the control: nothing else is")

	delete(c.Provided, "drain")
	_, err := c.ParseRequest("remediation/replace")
	require.ErrorContains(t, err, "cannot carry out", "a node that cannot be drained is not replaced undrained")
}

// TestAReplacementOfAnOlderVersionIsNotMadeTwice: in an older version the plan of a requested
// replacement had no drain, so that the replacement is the first step on record. It must not be
// issued a second time.
func TestAReplacementOfAnOlderVersionIsNotMadeTwice(t *testing.T) {
	c, n := requestConfig(), scene.Bare("n1")
	r := &Record{V: 1, ID: "abc234", Policy: "remediation/replace", Cause: Cause{Request: "remediation/replace"}, Phase: PhaseVerifying, Step: StepRef{Name: "replace", Attempt: 1},
		Done: Attempts{{Name: "replace", Number: 1}}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Intent: &Intent{ID: "abc234-0-1", At: scene.Noon}}
	n.Annotations[NodeRepairKey] = r.Encode()
	s := &lifecycle.State{Config: c, Node: n, Journal: ReadJournal(n)}
	require.NoError(t, s.Journal.Malformed)
	_, more := s.NextStep(c.PolicyOf(r.Policy, n), s.Journal.Record, r.Step)
	require.False(t, more)
	r.Step.Index = 1
	require.Len(t, c.PolicyOf(r.Policy, n).Plan, 1, "the control: the record counts")
	n.Annotations[NodeRepairKey] = r.Encode()
	require.Len(t, c.PolicyOf(r.Policy, n).Plan, 2)
}

func TestPolicyNamesAreAllThatRepairsAreCountedUnder(t *testing.T) {
	require.Equal(t, []string{"gpu", "unwanted", "plain", "drain", "replace", "control-plane", "remediation/reboot", "remediation/replace"}, requestConfig().PolicyNames())
}

func TestCauseReadsAsASentence(t *testing.T) {
	require.Equal(t, "alert 9f", Cause{Alert: "9f"}.String())
	require.Equal(t, "request policy/x", Cause{Request: "policy/x"}.String())
}
