package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/kube"
)

// generates generates Drydock's secrets as Drydock does, with only the rights of the release, until
// the value is there.
func generates(t *testing.T, drydock kubernetes.Interface, release, name, key string) string {
	t.Helper()
	own := kube.NewOwnSecret(drydock, types.NamespacedName{Namespace: release, Name: name}, key, clock.RealClock{}, logr.Discard())
	go func() { _ = own.Start(t.Context()) }()
	await(t, "the generated value of "+name, func() bool { return own.Value() != "" })
	return own.Value()
}

// in returns the data of a Secret.
func in(t *testing.T, l *lab.Lab, namespace, name, key string) string {
	t.Helper()
	s, err := l.Client().CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return string(s.Data[key])
}

// TestUpgradesKeepTheTokenAndTheKey: an older chart generated them, and Helm would otherwise remove
// them, or Drydock generated them. A rollback keeps them, too. The control: two installations have
// different values.
func TestUpgradesKeepTheTokenAndTheKey(t *testing.T) {
	l := cluster(t)
	present := filepath.Join(root(t), "charts", "drydock")
	older := t.TempDir()
	require.NoError(t, os.CopyFS(older, os.DirFS(present)))
	text, err := os.ReadFile("testdata/_secrets.tpl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(older, "templates", "_secrets.tpl"), text, 0o600))

	seen := map[string]string{}
	for release, first := range map[string]string{"of-the-older-chart": older, "of-drydock": present} {
		t.Cleanup(func() { sweep(t, l, release) })
		helm := func(command string, args ...string) {
			program(t, l, "helm", append([]string{command, release, "--namespace", release, "--no-hooks"}, args...)...)
		}
		values := []string{"--set", "agent.enabled=true", "--set", "admission.policy.enabled=false,allowSecondRelease=true"}
		helm("install", append([]string{first, "--create-namespace"}, values...)...)
		token, key := in(t, l, release, release+"-token", "token"), in(t, l, release, release+"-agent-key", "key")
		if first == present {
			require.Empty(t, token+key, "the chart generates nothing")
			drydock, err := l.ClientAs("system:serviceaccount:"+release+":"+release, "system:serviceaccounts", "system:authenticated")
			require.NoError(t, err)
			token, key = generates(t, drydock, release, release+"-token", "token"), generates(t, drydock, release, release+"-agent-key", "key")
		}
		require.Len(t, token, 43)
		require.Len(t, key, 43)
		stay := func(what string) {
			require.Equal(t, token, in(t, l, release, release+"-token", "token"), "%s: %s: Alertmanager may have a copy", release, what)
			require.Equal(t, key, in(t, l, release, release+"-agent-key", "key"), "%s: %s: the agents would not know each other", release, what)
		}
		helm("upgrade", append([]string{present}, values...)...)
		stay("upgrade")
		helm("upgrade", append([]string{present, "--set", "replicaCount=3"}, values...)...)
		stay("second upgrade")
		helm("rollback", "1")
		stay("rollback")
		for _, other := range []string{"of-the-older-chart", "of-drydock"} {
			require.NotEqual(t, token, seen[other])
		}
		seen[release] = token
	}
}
