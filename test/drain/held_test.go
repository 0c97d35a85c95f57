package drain

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

func TestABudgetHoldsADrainAndIsNamed(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 2)
	p.replicas("other", 3)
	p.budget("web", "web", 1, 2)
	s := p.start(kube.DrainOptions{})
	s.says(fmt.Sprintf(" is held back by PodDisruptionBudget %s/web (needs 1 healthy, has 1)", p.ns))
	s.says("1 of 5 pods are left; " + p.ns + "/web-")
	require.Len(t, p.on(), 1, "its replacement has no node, and so it stays")

	p.bind("web", 1, elsewhere) // as a scheduler does
	report, err := s.ends()
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 5, Evicted: 5}, report)
	require.Empty(t, p.on())
}

func TestManyHeldPodsAreNamedOnlyInPart(t *testing.T) {
	p := newPlace(t)
	p.drainer.Every = 2 * lab.Patience // a second round that ends while it reads the budgets would not report them
	p.replicas("web", 8)
	p.budget("web", "web", 8, 8)
	s := p.start(kube.DrainOptions{})
	s.says("; and 3 more")
	s.cancel(nil)
	report, _ := s.ends()
	require.Len(t, report.Held, 5)
	require.Equal(t, 3, report.More)
	require.Equal(t, p.ns+"/web", report.Held[0].Budget)
	require.Zero(t, report.Evicted)
	require.Len(t, p.on(), 8)
}

// The Eviction API answers 500 for ever.
func TestAPodWithTwoBudgetsSaysSo(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 1)
	p.budget("one", "web", 0, 1)
	p.budget("two", "web", 0, 1)
	s := p.start(kube.DrainOptions{})
	s.says(fmt.Sprintf("has 2 PodDisruptionBudgets (%[1]s/one, %[1]s/two)", p.ns))
	require.NoError(t, p.admin.PolicyV1().PodDisruptionBudgets(p.ns).Delete(t.Context(), "two", metav1.DeleteOptions{}))
	_, err := s.ends()
	require.NoError(t, err)
	require.Empty(t, p.on())
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	for name, verdict := range map[string]lab.Verdict{
		"500": lab.InternalError, "503": lab.Unavailable, "429": lab.TooManyRequests, "a broken connection": lab.Reset,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.replicas("web", 1)
			var n atomic.Int32
			p.onEviction(func(string) lab.Verdict {
				if n.Add(1) <= 3 {
					return verdict
				}
				return lab.Pass
			}, nil)
			s := p.start(kube.DrainOptions{})
			s.says("could not be evicted yet: ")
			report, err := s.ends()
			require.NoError(t, err)
			require.Equal(t, 1, report.Evicted)
			require.Equal(t, 4, p.asked(), "each answer was heard, and no try was the client's own")
		})
	}
}

func TestAPodThatHasGoneMeanwhileIsGone(t *testing.T) {
	p := newPlace(t)
	p.run("quick")
	p.onEviction(func(pod string) lab.Verdict {
		require.NoError(t, p.admin.CoreV1().Pods(p.ns).Delete(t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
		return lab.Pass
	}, nil)
	report, err := p.drain(kube.DrainOptions{WithoutController: remediations.WithoutControllerEvict})
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 1, Gone: 1}, report)
}

// kured#1269: a drain must not call a webhook that refuses for ever.
func TestAnAdmissionPolicyThatDeniesEvictionsEndsTheDrain(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 40)
	policy := strings.NewReplacer("NAME", p.ns).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods/eviction], operations: [CREATE]}]
  validations: [{expression: "false", message: "ask the database team first"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`)
	require.NoError(t, p.lab.Apply(t.Context(), []byte(policy)))
	p.eventually(func() bool { // the API server starts to use it within seconds
		dry := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.on()[0]}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
		err := p.admin.PolicyV1().Evictions(p.ns).Evict(t.Context(), withNamespace(dry, p.ns))
		return apierrors.IsInvalid(err)
	})
	report, err := p.drain(kube.DrainOptions{})
	require.ErrorIs(t, err, kube.ErrDrainRefused)
	require.ErrorContains(t, err, p.ns+"/web-")
	require.ErrorContains(t, err, "ask the database team first")
	require.Zero(t, report.Evicted)
	require.LessOrEqual(t, p.asked(), 8, "the others were left alone")
	require.Len(t, p.on(), 40)
}

func withNamespace(e *policyv1.Eviction, ns string) *policyv1.Eviction {
	e.Namespace = ns
	return e
}

func TestADrainNeedsEachOfItsRightsAndSaysWhichItLacks(t *testing.T) {
	lacks := map[string]func(p *place) string{
		"nodes": func(p *place) string { return `cannot get resource "nodes"` },
		"pods":  func(p *place) string { return `cannot list resource "pods"` },
		"pods/eviction": func(p *place) string {
			return p.ns + "/web-"
		},
	}
	without := func(resource string) []rbacv1.PolicyRule {
		var rules []rbacv1.PolicyRule
		for _, r := range rights() {
			if r.Resources[0] != resource {
				rules = append(rules, r)
			}
		}
		require.Len(t, rules, len(rights())-1)
		return rules
	}
	for resource, want := range lacks {
		t.Run(resource, func(t *testing.T) {
			p := newPlace(t, without(resource)...)
			p.replicas("web", 1)
			_, err := p.drain(kube.DrainOptions{})
			require.ErrorContains(t, err, want(p))
			require.ErrorContains(t, err, "forbidden")
			require.Len(t, p.on(), 1)
		})
	}
	t.Run("daemonsets", func(t *testing.T) {
		p := newPlace(t, without("daemonsets")...)
		p.daemonSet("agent")
		s := p.start(kube.DrainOptions{})
		s.says(`cannot get resource "daemonsets"`)
		s.cancel(nil)
		_, err := s.ends()
		require.Error(t, err)
	})
	t.Run("poddisruptionbudgets", func(t *testing.T) { // only the budget's numbers are missing then: the API server's own text names the budget
		p := newPlace(t, without("poddisruptionbudgets")...)
		p.replicas("web", 1)
		p.budget("guard", "web", 1, 1)
		p.start(kube.DrainOptions{}).says("The disruption budget guard needs 1 healthy pods and has 1 currently")
	})
}

// The drain waits for any pod that the kubelet of a healthy node does not end, and reports that.
func TestAPodThatDoesNotEndOnAWellNodeIsNamed(t *testing.T) {
	p := newPlace(t)
	p.run("stays", withFinalizer)
	p.run("goes")
	s := p.start(kube.DrainOptions{WithoutController: remediations.WithoutControllerEvict, MaxGrace: time.Second, DeadAfter: time.Second})
	s.says("1 of 2 pods are left, 1 of them terminating; " + p.ns + "/stays should have ended by ")
	p.unfinalize("stays")
	report, err := s.ends()
	require.NoError(t, err)
	require.Zero(t, report.Stuck)
	require.Equal(t, 2, p.asked(), "who is on the way out is not asked again")
}
