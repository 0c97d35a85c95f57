package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
)

// rights makes the API server say which verbs the user has.
func (d *desk) rights(verbs ...string) {
	connect := d.plugin.connect
	d.plugin.connect = func() (inspect.Client, error) {
		c, err := connect()
		c.SelfSubjectAccessReviewsGetter = d.cluster.AuthorizationV1()
		return c, err
	}
	d.cluster.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		created, _ := a.(clienttesting.CreateAction)
		r, _ := created.GetObject().(*authorizationv1.SelfSubjectAccessReview)
		r = r.DeepCopy()
		of := r.Spec.ResourceAttributes
		require.Contains(d.t, []string{"nodes", "repairs.drydock.dev"}, strings.TrimSuffix(of.Resource+"."+of.Group, "."), "with its group, which kubectl auth can-i does not send")
		if r.Status.Allowed = slices.Contains(verbs, of.Verb) && (of.Name == "" || of.Name == "node-3"); r.Status.Allowed {
			r.Status.Reason = `RBAC: allowed by ClusterRoleBinding "ops" of ClusterRole "drydock-operator" to Group "sre"`
		}
		return true, r, nil
	})
}

// TestRightsCanBeAsked: for each command whether the user may, and which role gives it.
func TestRightsCanBeAsked(t *testing.T) {
	d := newDesk(t)
	d.rights("patch", "approve", "request")
	code, stdout, stderr := d.run("can-i")
	require.Equal(t, cli.ExitFailed, code, "some are denied")
	require.Empty(t, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 1+len(actions.All()))
	const by = `RBAC: allowed by ClusterRoleBinding "ops" of ClusterRole "drydock-operator" to Group "sre"`
	for _, line := range lines[1:] {
		word, rest, _ := strings.Cut(line, " ")
		a := actions.Named(word)
		require.NotNil(t, a, line)
		if a.Verb == "" || a.Verb == "approve" || a.Verb == "request" {
			require.Contains(t, rest, " yes   ", line)
			require.Contains(t, rest, "patch nodes ("+by+")")
		} else {
			require.Contains(t, rest, " no    ", line)
			require.Contains(t, rest, `you lack the verb "`+a.Verb+`" on repairs.drydock.dev; ask an administrator to bind the ClusterRole RELEASE-operator of Drydock's chart, which has this right`)
		}
	}
	for args, want := range map[string]int{
		"can-i approve": cli.ExitOK, "can-i approve node-3": cli.ExitOK, "can-i approve node-4": cli.ExitFailed, "can-i reset": cli.ExitFailed, "can-i dance": cli.ExitUsage,
	} {
		code, stdout, stderr = d.run(strings.Fields(args)...)
		require.Equal(t, want, code, "%s: %s%s", args, stdout, stderr)
	}
}

// TestWithoutRightsOfItsOwnPatchIsEnough, where the configuration says that admission asks for no
// more.
func TestWithoutRightsOfItsOwnPatchIsEnough(t *testing.T) {
	d := newDesk(t, ledgerOf(calmLedger()), installedWith(whyConfig+"webhook: {certDir: /etc/drydock/webhook, rights: false}\n"))
	d.rights("patch")
	code, stdout, _ := d.run("can-i")
	require.Equal(t, cli.ExitOK, code, stdout)
}
