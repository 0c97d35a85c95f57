package clusterapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// rights gives a service account of the namespace the rights of deploy/cluster-api-management.yaml,
// and returns its kubeconfig.
func rights(t *testing.T, namespace string) *clientcmdapi.Config {
	t.Helper()
	file, err := os.ReadFile("../../../deploy/cluster-api-management.yaml")
	require.NoError(t, err)
	l := lab.Shared(t)
	ctx := t.Context()
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	for _, part := range strings.Split(strings.ReplaceAll(string(file), "capi-workload", namespace), "\n---\n") {
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(part), &kind))
		switch kind.Kind {
		case "Role":
			require.NoError(t, yaml.UnmarshalStrict([]byte(part), &role))
		case "RoleBinding":
			require.NoError(t, yaml.UnmarshalStrict([]byte(part), &binding))
		}
	}
	_, err = l.Client().RbacV1().Roles(namespace).Create(ctx, &role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = l.Client().RbacV1().RoleBindings(namespace).Create(ctx, &binding, metav1.CreateOptions{})
	require.NoError(t, err)
	path, err := l.ServiceAccountKubeconfig(ctx, namespace, binding.Subjects[0].Name, "")
	require.NoError(t, err)
	require.NoError(t, l.AwaitRight(ctx, "system:serviceaccount:"+namespace+":"+binding.Subjects[0].Name, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "list", Group: lab.CAPIMachines.Group, Resource: "machines",
	}))
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	return config
}

// readsNodes is a user of this cluster with the right to read Nodes, and no right on Cluster API's
// objects.
func readsNodes(t *testing.T) string {
	t.Helper()
	const name = "reads-nodes"
	l := lab.Shared(t)
	_, err := l.Client().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, l.AwaitRight(t.Context(), name, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes"}))
	return name
}

// TestAManagementClusterElsewhere: Machines are read and written there with the rights of
// deploy/cluster-api-management.yaml, and Nodes are read here. An unusable kubeconfig, and a
// cluster that does not answer or refuses, hold all replacements and are named. A new kubeconfig
// counts at once.
func TestAManagementClusterElsewhere(t *testing.T) {
	w, _, machine := shared(t)
	ctx := t.Context()
	good := rights(t, w.Name)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(change func(*clientcmdapi.Config)) {
		config := good.DeepCopy()
		if change != nil {
			change(config)
		}
		require.NoError(t, clientcmd.WriteToFile(*config, path))
	}
	here := lab.Shared(t).ConfigAs(readsNodes(t))
	r := w.replacer(func(o *Options) { o.API, o.Kubeconfig = here, path })
	s := Share{Client: r.Client}

	require.Contains(t, r.Survey(ctx, machine).Trouble, "the kubeconfig of the API server of the management cluster cannot be read: ")
	write(nil)
	survey := r.Survey(ctx, machine)
	require.Empty(t, survey.Trouble)
	machine.Before = survey.Before
	require.Contains(t, w.replacer(func(o *Options) { o.API = here }).Survey(ctx, machine).Trouble, "HTTP 403", "the control: there is no such right here")

	recorded(t, machine.Node, phase(remediations.PhaseActing, true))
	require.NoError(t, s.Take(ctx, machine, "redfish"))
	require.NoError(t, s.GiveBack(ctx))
	require.Contains(t, w.Get("Machine", "one").GetAnnotations(), skipKey, "its Node here is under repair")

	user := func(c *clientcmdapi.Config) *clientcmdapi.AuthInfo {
		return c.AuthInfos[c.Contexts[c.CurrentContext].AuthInfo]
	}
	cluster := func(c *clientcmdapi.Config) *clientcmdapi.Cluster {
		return c.Clusters[c.Contexts[c.CurrentContext].Cluster]
	}
	token := user(good).Token
	require.NotEmpty(t, token)
	for says, change := range map[string]func(*clientcmdapi.Config){
		"cannot be used: the file is not a kubeconfig with a current context": func(c *clientcmdapi.Config) { c.CurrentContext = "" },
		"cannot be used: the file gets its credentials from a program or a plugin": func(c *clientcmdapi.Config) {
			user(c).Exec = &clientcmdapi.ExecConfig{Command: "aws", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		},
		"cannot be used: the file does not check the server's certificate": func(c *clientcmdapi.Config) {
			cluster(c).InsecureSkipTLSVerify, cluster(c).CertificateAuthorityData = true, nil
		},
		"the API server of the management cluster did not answer":                                          func(c *clientcmdapi.Config) { cluster(c).Server = "https://127.0.0.1:1" },
		"the API server of the management cluster refuses Drydock's account, or the account lacks a right": func(c *clientcmdapi.Config) { user(c).Token = token[:len(token)-9] },
	} {
		write(change)
		said := r.Survey(ctx, machine)
		require.Contains(t, said.Trouble, says)
		require.NotContains(t, said.Trouble, token[:len(token)-9])
		require.True(t, said.Fleetwide, says)
		outcome, err := r.Act(ctx, machine, yes)
		require.Equal(t, remediations.CallRefused, outcome)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, s.Free(ctx, machine, "redfish"), says, "nor is the machine repaired in another way")
		require.ErrorContains(t, s.GiveBack(ctx), says)
	}
	require.Empty(t, w.asked())

	write(nil)
	recorded(t, machine.Node, nil)
	require.NoError(t, s.GiveBack(ctx))
	require.NotContains(t, w.Get("Machine", "one").GetAnnotations(), skipKey)
	outcome, err := r.Act(ctx, machine, yes)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Len(t, w.asked(), 1)
}
