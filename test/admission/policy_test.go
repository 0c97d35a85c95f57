package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"pgregory.net/rapid"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// installPolicy installs only the ValidatingAdmissionPolicy, and removes it at the end of the test.
func installPolicy(t testing.TB, l *lab.Lab, mode string) {
	t.Helper()
	v := values(mode, map[string]any{"exempt": exempt()})
	v["admission"] = map[string]any{"webhook": map[string]any{"enabled": false}}
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, v))
	t.Cleanup(func() { removeAdmission(t, l) })
}

// removeAdmission deletes the policy and the webhook configuration, as docs/reference/admission.md
// describes, and waits until nothing is denied any more.
func removeAdmission(t testing.TB, l *lab.Lab) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	admission := l.Client().AdmissionregistrationV1()
	_ = admission.ValidatingWebhookConfigurations().Delete(ctx, "drydock", metav1.DeleteOptions{}) // it may not exist
	_ = admission.ValidatingAdmissionPolicies().Delete(ctx, "drydock", metav1.DeleteOptions{})
	await(t, "nothing to be denied any more", func() bool { return forged(t, l) == "" })
}

// forged returns who denies a person a write of Drydock's own keys. Every kind of admission denies
// that, so it shows which kind is active.
func forged(t testing.TB, l *lab.Lab) string {
	t.Helper()
	c := requests.Case{Change: requests.Forge, By: requests.Person}
	return denier(try(t, context.WithoutCancel(t.Context()), as(t, l, requests.Drydock), as(t, l, requests.Person), &c))
}

func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, lab.Patience, 50*time.Millisecond, "waiting for %s", what)
}

// TestPolicyAndCoreSayTheSame: for the hard core, an API server with only the policy denies exactly
// what the core denies. It allows everything else. The test uses the fixed table first, and then
// random requests.
func TestPolicyAndCoreSayTheSame(t *testing.T) {
	l := lab.Shared(t)
	installPolicy(t, l, "enforce")
	await(t, "the policy", func() bool { return forged(t, l) == "policy" })
	clients := map[string]kubernetes.Interface{}
	client := func(c *requests.Case) kubernetes.Interface {
		key := fmt.Sprint(c.By.Name, c.Unentitled)
		if clients[key] == nil {
			clients[key] = of(t, l, c)
		}
		return clients[key]
	}
	drydock := as(t, l, requests.Drydock)
	unentitled(t, l)
	denied := 0
	for _, c := range requests.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			err := try(t, t.Context(), drydock, client(&c), &c)
			want := ""
			if c.Core {
				want = "policy"
				denied++
			}
			require.Equal(t, want, denier(err), "%v", err)
			require.Equal(t, c.Core, c.HardCore(), "the table and the oracle")
		})
	}
	require.Greater(t, denied, 60, "the control")

	// A request that deletes all Nodes at once names no Node.
	inFlight := requests.Bare()
	requests.Put(inFlight, requests.Record(remediations.PhaseVerifying))
	put(t, t.Context(), drydock, inFlight)
	all := metav1.ListOptions{FieldSelector: "metadata.name=" + requests.Node}
	err := as(t, l, requests.Person).CoreV1().Nodes().DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, all)
	require.Equal(t, "policy", denier(err), "%v", err)
	require.ErrorContains(t, err, "node n1 is under repair "+requests.ID+" by policy node-not-ready: reboot is Verifying")
	require.ErrorContains(t, err, "deleting the node would collide with the repair. To wait: kubectl drydock status -w, or kubectl get node n1")

	t.Run("whatever", func(t *testing.T) {
		ctx, others := t.Context(), 0
		rapid.Check(t, func(t *rapid.T) {
			c := requests.Generate(t)
			got := denier(try(t, ctx, drydock, client(&c), &c))
			if strings.Contains(got, "is not allowed to") { // the message of NodeRestriction, which comes first
				others++
				return
			}
			ch := c.ChangeOf()
			if c.Status && ch.New != nil {
				ch.New.Spec = *ch.Old.Spec.DeepCopy()
			}
			v := admission.Validate(requests.Config(remediations.ModeEnforce), ch, func() []*corev1.Node { return nil }, requests.Now)
			want := ""
			if c.HardCore() {
				want = "policy"
				require.False(t, v.Allowed, "the core")
			}
			require.Equal(t, want, got)
		})
		t.Logf("%d requests were denied by others", others)
	})

	// An expression of the policy must never fail, because a failed one lets the request through
	// silently. Only this counter shows such failures.
	metrics, err := l.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apiserver_validating_admission_policy_check_total{") {
			seen++
			require.NotContains(t, line, `enforcement_action="allow"`)
		}
		require.NotRegexp(t, `^apiserver_admission_match_condition_evaluation_errors_total`, line)
	}
	require.NotZero(t, seen, "the control")
	await(t, "the controller manager to have checked the expressions' types", func() bool {
		policy, err := l.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "drydock", metav1.GetOptions{})
		require.NoError(t, err)
		if policy.Status.TypeChecking == nil {
			return false
		}
		require.Empty(t, policy.Status.TypeChecking.ExpressionWarnings)
		return true
	})
}

// TestPolicyDeniesKeysWhereNothingEnforces: in observe mode, the policy denies only changes of
// Drydock's own keys. A record that a kubelet forges in observe mode would be believed as soon as
// Drydock enforces.
func TestPolicyDeniesKeysWhereNothingEnforces(t *testing.T) {
	l := lab.Shared(t)
	installPolicy(t, l, "observe")
	await(t, "the policy", func() bool { return forged(t, l) == "policy" })
	drydock, denied := as(t, l, requests.Drydock), 0
	unentitled(t, l)
	for _, c := range requests.Cases() {
		if !c.Core {
			continue
		}
		want := ""
		if c.Reason == admission.ReasonNodeIdentity || c.Reason == admission.ReasonOwnKey || c.Reason == admission.ReasonRightMissing {
			want = "policy"
			denied++
		}
		var err error
		await(t, c.Name, func() bool { // if a controller taints the Node meanwhile, NodeRestriction denies the request first
			err = try(t, t.Context(), drydock, of(t, l, &c), &c)
			return !strings.Contains(denier(err), "is not allowed to")
		})
		require.Equal(t, want, denier(err), "%s: %v", c.Name, err)
	}
	require.Greater(t, denied, 10, "the control")
}
