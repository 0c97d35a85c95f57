package admission

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/test/admission/requests"
)

// These are two users: the ServiceAccount of a network plugin, which may patch nodes, and an
// engineer who has the chart's role.
var (
	plugin   = requests.User{Name: "system:serviceaccount:kube-system:cni", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}}
	engineer = requests.User{Name: "ada", Groups: []string{"system:authenticated"}}
)

// people gives both users their roles, and returns their clients.
func people(t *testing.T, l *lab.Lab) (of map[string]*warned) {
	t.Helper()
	rbac := l.Client().RbacV1()
	ctx := context.WithoutCancel(t.Context())
	patches := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "patches-nodes"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}}
	_, err := rbac.ClusterRoles().Create(ctx, patches, metav1.CreateOptions{})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	of = map[string]*warned{}
	for role, u := range map[string]requests.User{"patches-nodes": plugin, "drydock-operator": engineer} {
		_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.Name}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = rbac.ClusterRoleBindings().Delete(ctx, role, metav1.DeleteOptions{}) })
		require.NoError(t, l.AwaitRight(ctx, u.Name, authorizationv1.ResourceAttributes{Verb: "patch", Resource: "nodes"}))
		of[u.Name] = newWarned(t, l, u.Name, u.Groups...)
	}
	return of
}

// words are the annotations that people may write, each with the verb that it needs.
var words = map[string]struct{ value, verb string }{
	remediations.RequestKey: {"remediation/reboot", "request"}, remediations.ApproveKey: {"abcdef", "approve"}, remediations.ResetKey: {"true", "reset"},
	remediations.CancelKey: {"abcdef", "cancel"}, remediations.BreakGlassKey: {"why", "break-glass"},
}

func say(t *testing.T, c kubernetes.Interface, key string, value any) error {
	t.Helper()
	body := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
	_, err := c.CoreV1().Nodes().Patch(t.Context(), requests.Node, types.MergePatchType, encode(t, body), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// requireRights asserts that a user who may only patch nodes cannot write any of the words, because
// by denies it. If by is empty, nothing denies it. A user with the role can write all of them.
func requireRights(t *testing.T, of map[string]*warned, by string) {
	t.Helper()
	for key, word := range words {
		who := of[plugin.Name]
		err := who.checked(func() error { return say(t, who, key, word.value) })
		require.Equal(t, by, denier(err), "%s: %v", key, err)
		if by != "" {
			for _, part := range []string{key, "node n1", plugin.Name, `the verb "` + word.verb + `" on repairs.drydock.dev`, "-operator has it: ask an administrator to bind that role"} {
				require.ErrorContains(t, err, part)
			}
		}
		who = of[engineer.Name]
		require.NoError(t, who.checked(func() error { return say(t, who, key, word.value) }), key)
	}
	require.NoError(t, say(t, of[plugin.Name], remediations.PauseKey, "true"), "whoever may patch nodes may stop repairs")
}

// requireKept asserts two denials by by: Drydock's own keys cannot be removed by a user who may
// only patch nodes, and no user can add an owner to a node under repair. If by is empty, both are
// allowed.
func (y *yard) requireKept(of map[string]*warned, by string) {
	y.t.Helper()
	defer y.becomes(requests.Node, "")
	record := func(n *corev1.Node) { requests.Put(n, requests.Record(remediations.PhaseExhausted)) }
	y.becomes(requests.Node, "", record)
	remove := func(who *warned) error {
		return who.checked(func() error { return say(y.t, who, remediations.NodeRepairKey, nil) })
	}
	err := remove(of[plugin.Name])
	require.Equal(y.t, by, denier(err), "%v", err)
	for _, part := range []string{"removed from node n1", plugin.Name, `the verb "reset" on repairs.drydock.dev`, "-operator has it: ask an administrator to bind that role"} {
		require.ErrorContains(y.t, err, part)
	}
	require.NoError(y.t, remove(of[engineer.Name]), "the control")

	own := func() error {
		body := []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"gone","uid":"5b0c1f7e-0000-4000-8000-000000000001"}]}}`)
		_, err := of[engineer.Name].CoreV1().Nodes().Patch(y.t.Context(), requests.Node, types.MergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	require.NoError(y.t, own(), "the control: no repair is in flight")
	y.becomes(requests.Node, remediations.PhaseVerifying)
	err = own()
	require.Equal(y.t, by, denier(err), "%v", err)
	require.ErrorContains(y.t, err, "changing the node's ownerReferences would collide with the repair")
}

// TestEachAnnotationNeedsItsOwnRight: the right to patch nodes is not enough to have a machine
// replaced. The policy denies it. Without the policy, the webhook denies it.
func TestEachAnnotationNeedsItsOwnRight(t *testing.T) {
	l := lab.Shared(t)
	y := newYard(t, l, "enforce")
	y.becomes(requests.Node, "")
	of := people(t, l)
	await(t, "the role", func() bool { return say(t, of[engineer.Name], remediations.RequestKey, "reboot") == nil })
	requireRights(t, of, "policy")
	y.requireKept(of, "policy")

	// Removing another person's request needs no right of its own.
	for key, word := range words {
		_, err := y.user.CoreV1().Nodes().Patch(t.Context(), requests.Node, types.MergePatchType, encode(t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: word.value}}}), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, say(t, of[plugin.Name], key, nil), key)
		require.NoError(t, say(t, of[plugin.Name], "example.com/rack", "r2"), "with %s there", key)
		y.becomes(requests.Node, "")
	}

	require.NoError(t, l.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), "drydock", metav1.DeleteOptions{}))
	await(t, "the webhook alone", func() bool { return forged(t, l) == "webhook" })
	requireRights(t, of, "webhook")
	y.requireKept(of, "webhook")
	require.NotZero(t, y.metric(`drydock_admission_total{reason="RightMissing",verdict="denied"}`))
}

// TestRightsInObserveModeAndNowhere: these rights are also required in observe mode. They are not
// required if a value of the chart switches them off.
func TestRightsInObserveModeAndNowhere(t *testing.T) {
	l := lab.Shared(t)
	installPolicy(t, l, "observe")
	await(t, "the policy", func() bool { return forged(t, l) == "policy" })
	of := people(t, l)
	await(t, "the role", func() bool { return say(t, of[engineer.Name], remediations.RequestKey, "reboot") == nil })
	requireRights(t, of, "policy")

	v := values("observe", map[string]any{"exempt": exempt()})
	v["admission"] = map[string]any{"webhook": map[string]any{"enabled": false}, "rights": map[string]any{"enabled": false}}
	require.NoError(t, l.InstallChart(t.Context(), "drydock", lab.Namespace, v))
	await(t, "the policy without them", func() bool { return say(t, of[plugin.Name], remediations.RequestKey, "reboot") == nil })
	requireRights(t, of, "")
}
