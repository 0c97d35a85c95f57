package lab_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
)

const notReadyRule = `groups:
- name: test
  interval: 1m
  rules:
  - alert: NodeNotReady
    expr: kube_node_status_condition{condition="Ready",status="true"} == 0
    for: 15m
`

func TestALostNodeRaisesAnAlertThatItsReturnResolves(t *testing.T) {
	ctx := t.Context()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(notReadyRule), 0o600))
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret"), 0o600))
	url, alerts := hook(t, "s3cret")

	second := time.Second
	begun := time.Now()
	l := lab.New(t, lab.Options{
		Nodes: 3, RuleFiles: []string{rules}, RuleFor: &second, NodeGrace: grace, Out: t.Output(),
		Webhook: lab.WebhookTarget{URL: url, TokenFile: token},
	})
	t.Logf("up in %s", time.Since(begun))

	l.Break("node-1")
	lost := awaitNode(t, l, "node-1", func(n *corev1.Node) bool { return ready(n) == corev1.ConditionUnknown })
	t.Logf("lost after %s", lost)
	begun = time.Now()
	awaitAlert(t, alerts, "node-1", "NodeNotReady/node-1/firing")
	t.Logf("alert %s later", time.Since(begun))

	// Nothing but Heal brings it back.
	stays, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	w, err := l.Client().CoreV1().Nodes().Watch(stays, metav1.ListOptions{FieldSelector: "metadata.name=node-1"})
	require.NoError(t, err)
	for event := range w.ResultChan() {
		require.Equal(t, corev1.ConditionUnknown, ready(event.Object.(*corev1.Node)))
	}

	require.NoError(t, l.Heal(ctx, "node-1", "boot-2"))
	awaitNode(t, l, "node-1", func(n *corev1.Node) bool {
		return ready(n) == corev1.ConditionTrue && n.Status.NodeInfo.BootID == "boot-2"
	})
	begun = time.Now()
	awaitAlert(t, alerts, "node-1", "NodeNotReady/node-1/resolved")
	t.Logf("resolved %s later", time.Since(begun))
	requireKept(t, l)

	pids := children(t, l.Dir())
	require.Len(t, pids, 7)
	l.Stop()
	require.Empty(t, children(t, l.Dir()))
	require.NoDirExists(t, l.Dir())
}

func TestLabsRunSideBySide(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			l := lab.New(t, lab.Options{Components: lab.APIServerOnly, NodeSpecs: []lab.NodeSpec{{Name: name, BootID: "first"}}, Out: t.Output()})
			t.Logf("up in %s", time.Since(begun))
			nodes, err := l.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, nodes.Items, 1)
			require.Equal(t, name, nodes.Items[0].Name)
			require.Equal(t, "first", nodes.Items[0].Status.NodeInfo.BootID)
			require.Empty(t, nodes.Items[0].Spec.Taints)
		})
	}
}

func TestALabThatCannotStartSaysWhyAndLeavesItsLogs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := lab.Start(t.Context(), lab.Options{Components: lab.APIServerOnly, APIServerFlags: []string{"--no-such-flag"}})
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
	logs, globErr := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "drydock-lab-*", "logs", "kube-apiserver.log"))
	require.NoError(t, globErr)
	require.Len(t, logs, 1)
	require.ErrorContains(t, err, logs[0])
	require.Empty(t, children(t, os.Getenv("TMPDIR")))
}

func TestALabEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := lab.Start(ctx, lab.Options{Components: lab.APIServerOnly})
	require.NoError(t, err)
	etcd := l.Process("etcd")
	cancel()
	<-etcd.Done()
	l.Stop()
	require.NoDirExists(t, l.Dir())
	require.Empty(t, children(t, l.Dir()))
}

func TestTheClusterOutlivesARestartOfItsAPIServer(t *testing.T) {
	ctx, l := t.Context(), lab.Shared(t)
	server := l.Process("kube-apiserver")
	server.Kill()
	_, err := l.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	require.Error(t, err)
	require.NoError(t, server.Start(ctx))
	requireKept(t, l)
}
