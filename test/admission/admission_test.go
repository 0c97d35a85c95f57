// Package admission tests which requests are denied and which are not, on a real API server: with
// only the ValidatingAdmissionPolicy, and together with the real webhook.
package admission

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/test/admission/requests"
)

func TestMain(m *testing.M) {
	nodes := []lab.NodeSpec{{Name: requests.Node}}
	for _, name := range []string{"n2", "n3", "n4", "n5"} {
		nodes = append(nodes, lab.NodeSpec{Name: name})
	}
	lab.Main(m, lab.Options{Components: lab.ControlPlane, NodeSpecs: nodes, NodeGrace: lab.LongNodeGrace})
}

// values are the chart's values that this package needs.
func values(mode string, webhook map[string]any) map[string]any {
	return map[string]any{
		"config":    map[string]any{"mode": mode, "webhook": webhook, "providers": map[string]any{"karpenter": map[string]any{}, "external": map[string]any{}}},
		"admission": map[string]any{"webhook": map[string]any{"enabled": true}},
	}
}

func exempt() map[string]any {
	return map[string]any{"users": asAny(requests.Exempt.Users), "groups": asAny(requests.Exempt.Groups)}
}

func asAny(in []string) []any {
	var out []any
	for _, s := range in {
		out = append(out, s)
	}
	return out
}

// as returns a client of that user. The user has all rights, so only admission can deny a request.
func as(t testing.TB, l *lab.Lab, u requests.User) kubernetes.Interface {
	t.Helper()
	c, err := l.ClientAs(u.Name, append([]string{"system:masters"}, u.Groups...)...)
	require.NoError(t, err)
	return c
}

// changesNodes is a group that has all rights on Nodes, but no verb on repairs.drydock.dev.
const changesNodes = "changes-nodes"

// of returns a client of the case's user, with or without the verbs on repairs.drydock.dev.
func of(t testing.TB, l *lab.Lab, c *requests.Case) kubernetes.Interface {
	t.Helper()
	if !c.Unentitled {
		return as(t, l, c.By)
	}
	client, err := l.ClientAs(c.By.Name, append([]string{changesNodes}, c.By.Groups...)...)
	require.NoError(t, err)
	return client
}

// unentitled gives the group changesNodes its rights.
func unentitled(t testing.TB, l *lab.Lab) {
	t.Helper()
	rbac, ctx := l.Client().RbacV1(), context.WithoutCancel(t.Context())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: changesNodes}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"*"}}}}
	_, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: changesNodes}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: changesNodes},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: changesNodes}},
	}, metav1.CreateOptions{})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	await(t, "the group's rights", func() bool {
		_, err := of(t, l, &requests.Case{By: requests.Person, Unentitled: true}).CoreV1().Nodes().Get(ctx, requests.Node, metav1.GetOptions{})
		return err == nil
	})
}

// denier returns who denied the request: "policy", "webhook", or another part of the API server. It
// is empty if the request was allowed.
func denier(err error) string {
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return ""
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return "policy"
	case strings.Contains(err.Error(), "admission webhook"):
		return "webhook"
	}
	return err.Error()
}

// put writes the Node's state at the beginning of the case. It writes as Drydock, which admission
// allows.
func put(t require.TestingT, ctx context.Context, drydock kubernetes.Interface, before *corev1.Node) *corev1.Node {
	live, err := drydock.CoreV1().Nodes().Get(ctx, before.Name, metav1.GetOptions{})
	require.NoError(t, err)
	live.ResourceVersion = "" // another writer was faster
	live.Annotations, live.Labels = onto(before, live), before.Labels
	live.Spec.Unschedulable, live.Spec.Taints = before.Spec.Unschedulable, before.Spec.Taints
	live, err = drydock.CoreV1().Nodes().Update(ctx, live, metav1.UpdateOptions{})
	require.NoError(t, err)
	return live
}

// onto returns the annotations of the table's Node, with the UID of the live one.
func onto(n, live *corev1.Node) map[string]string {
	out := map[string]string{}
	for k, v := range n.Annotations {
		out[k] = strings.ReplaceAll(v, requests.UID, string(live.UID))
	}
	return out
}

// try makes the case's request as a dry run.
func try(t require.TestingT, ctx context.Context, drydock, user kubernetes.Interface, c *requests.Case) error {
	before, after := c.Nodes()
	if c.Create {
		before = requests.Bare()
	}
	requests.Normalize(before)
	live := put(t, ctx, drydock, before)
	nodes, dry := user.CoreV1().Nodes(), []string{metav1.DryRunAll}
	if after != nil {
		requests.Normalize(after)
	}
	switch {
	case c.Create:
		_, err := nodes.Create(ctx, after, metav1.CreateOptions{DryRun: dry})
		return err
	case after == nil:
		return nodes.Delete(ctx, before.Name, metav1.DeleteOptions{DryRun: dry})
	}
	live.ResourceVersion = ""
	live.Annotations, live.Labels = onto(after, live), after.Labels
	live.Spec.Unschedulable, live.Spec.Taints, live.OwnerReferences = after.Spec.Unschedulable, after.Spec.Taints, after.OwnerReferences
	var err error
	if c.Status {
		_, err = nodes.UpdateStatus(ctx, live, metav1.UpdateOptions{DryRun: dry})
	} else {
		_, err = nodes.Update(ctx, live, metav1.UpdateOptions{DryRun: dry})
	}
	return err
}

func encode(t require.TestingT, v any) []byte {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}
