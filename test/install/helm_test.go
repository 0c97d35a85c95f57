package install

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

const shipping = "shipping" // the release, and its namespace

// helm runs the real Helm on the chart.
func helm(t *testing.T, l *lab.Lab, command string, more ...string) string {
	t.Helper()
	args := []string{command, shipping}
	if command != "uninstall" {
		args = append(args, filepath.Join(root(t), "charts", "drydock"))
	}
	if command == "install" || command == "upgrade" {
		more = append(more, "--no-hooks") // the hooks need pods, and no kubelet runs them here
	}
	return program(t, l, "helm", append(append(args, "--namespace", shipping), more...)...)
}

func ci(t *testing.T, name string) string {
	t.Helper()
	if example, ok := strings.CutPrefix(name, "example-"); ok {
		return filepath.Join(root(t), "charts", "drydock", "examples", example+"-values.yaml")
	}
	return filepath.Join(root(t), "charts", "drydock", "ci", name+"-values.yaml")
}

// TestInstallUpgradeUninstall runs the life of a release with the real Helm.
func TestInstallUpgradeUninstall(t *testing.T) {
	l := cluster(t)
	t.Cleanup(func() { sweep(t, l, shipping) })
	notes := helm(t, l, "install", "--create-namespace")
	for _, says := range []string{"Mode: observe", "Alerts         NOT by this chart", "Route          NOT by this chart", "matchers: ['remediation!~", "kubectl drydock status"} {
		require.Contains(t, notes, says)
	}
	drydock, err := l.ClientAs("system:serviceaccount:"+shipping+":"+shipping, "system:serviceaccounts", "system:serviceaccounts:"+shipping, "system:authenticated")
	require.NoError(t, err)
	require.Empty(t, secret(t, l, "shipping-token").Data, "the chart generates no secret")
	token := generates(t, drydock, shipping, "shipping-token", "token")

	// Drydock works with only its own rights: it writes the ledger, and a record on a Node.
	ledger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "drydock-ledger"}, Data: map[string]string{"ledger": "{}"}}
	await(t, "the rights", func() bool {
		_, err := drydock.CoreV1().ConfigMaps(shipping).Create(t.Context(), ledger, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	_, err = drydock.CoreV1().ConfigMaps(shipping).Patch(t.Context(), "drydock-ledger", types.MergePatchType, []byte(`{"data":{"arrived":"now"}}`), metav1.PatchOptions{})
	require.NoError(t, err, "a replica's note that a post arrived")
	record := []byte(`{"metadata":{"annotations":{"` + remediations.HistoryKey + `":"[]"}}}`)
	await(t, "the right to Nodes, and the policy of no release before this one", func() bool {
		_, err := drydock.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, record, metav1.PatchOptions{})
		return err == nil
	})
	require.False(t, evicts(t, drydock), "it observes")

	notes = helm(t, l, "upgrade", "-f", ci(t, "civo-enforce"))
	for _, says := range []string{"Mode: enforce", "PrometheusRule shipping (release=kube-prometheus-stack)", "AlertmanagerConfig shipping; Alertmanager calls its receiver shipping/shipping/drydock", "they deny changes that collide"} {
		require.Contains(t, notes, says)
	}
	require.Equal(t, token, in(t, l, shipping, "shipping-token", "token"), "Alertmanager may have a copy")
	await(t, "the right to drain", func() bool { return evicts(t, drydock) })

	// What Drydock adds to the chart's objects stays, also across upgrades.
	certify(t, l, drydock)
	notes = helm(t, l, "upgrade", "-f", ci(t, "civo-enforce"), "--set", "agent.enabled=true")
	require.Contains(t, notes, "DaemonSet shipping-agent probes the paths between the nodes, and PodMonitor shipping-agent lets Prometheus scrape it (release=kube-prometheus-stack)")
	key := generates(t, drydock, shipping, "shipping-agent-key", "key")
	require.GreaterOrEqual(t, len(key), 32, "the agents refuse a shorter one")
	helm(t, l, "upgrade", "-f", ci(t, "civo-enforce"), "--set", "agent.enabled=true", "--set", "replicaCount=3")
	require.Equal(t, key, in(t, l, shipping, "shipping-agent-key", "key"), "agents that run would not know each other")
	require.Equal(t, "authority", string(secret(t, l, "shipping-webhook").Data["ca.crt"]))
	configuration, err := l.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), shipping, metav1.GetOptions{})
	require.NoError(t, err)
	for _, w := range configuration.Webhooks {
		require.NotEmpty(t, w.ClientConfig.CABundle, w.Name)
	}
	recordsStay(t, l)

	person, err := l.ClientAs("a-person", "system:masters")
	require.NoError(t, err)
	forge := []byte(`{"metadata":{"annotations":{"` + remediations.HistoryKey + `":"forged"}}}`)
	await(t, "the policy", func() bool {
		_, err := person.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, forge, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})

	helm(t, l, "uninstall")
	require.Empty(t, belonging(t, l, shipping), "these are left")
	recordsStay(t, l)
	await(t, "nothing to be denied any more", func() bool {
		_, err := person.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, forge, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
	for _, unschedulable := range []string{"true", "false"} {
		_, err = person.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, []byte(`{"spec":{"unschedulable":`+unschedulable+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, lab.Patience, 50*time.Millisecond, "waiting for %s", what)
}

func secret(t *testing.T, l *lab.Lab, name string) *corev1.Secret {
	t.Helper()
	s, err := l.Client().CoreV1().Secrets(shipping).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return s
}

// evicts reports whether Drydock may evict the pods of other namespaces.
func evicts(t *testing.T, drydock kubernetes.Interface) bool {
	t.Helper()
	err := drydock.CoreV1().Pods("default").EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: "default"}})
	require.True(t, apierrors.IsForbidden(err) || apierrors.IsNotFound(err), "%v", err)
	return apierrors.IsNotFound(err)
}

// certify writes, as Drydock, what Drydock's own certificate rotation writes.
func certify(t *testing.T, l *lab.Lab, drydock kubernetes.Interface) {
	t.Helper()
	await(t, "the right to its Secret", func() bool {
		s, err := drydock.CoreV1().Secrets(shipping).Get(t.Context(), "shipping-webhook", metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			return false
		}
		require.NoError(t, err)
		s.Data = map[string][]byte{"ca.crt": []byte("authority"), "tls.crt": []byte("c"), "tls.key": []byte("k")}
		_, err = drydock.CoreV1().Secrets(shipping).Update(t.Context(), s, metav1.UpdateOptions{})
		require.NoError(t, err)
		return true
	})
	configurations := drydock.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	await(t, "the right to the webhook's configuration", func() bool {
		c, err := configurations.Get(t.Context(), shipping, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			return false
		}
		require.NoError(t, err)
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = l.AdminConfig().CAData
		}
		_, err = configurations.Update(t.Context(), c, metav1.UpdateOptions{})
		require.NoError(t, err)
		return true
	})
}

// recordsStay asserts that the ledger and the record on the Node still exist. Neither belongs to
// the release.
func recordsStay(t *testing.T, l *lab.Lab) {
	t.Helper()
	n, err := l.Client().CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "[]", n.Annotations[remediations.HistoryKey])
	c, err := l.Client().CoreV1().ConfigMaps(shipping).Get(t.Context(), "drydock-ledger", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "now", c.Data["arrived"])
}

// TestTheRealHelmReadsEveryVariant: the real Helm renders every variant as our own code does, and
// its linter accepts it.
func TestTheRealHelmReadsEveryVariant(t *testing.T) {
	l := cluster(t)
	for name := range variants(t) {
		args := []string{"-f", ci(t, name)}
		if strings.HasPrefix(name, "example-") {
			args = append(args, "--set", "monitoring.labels.release=kube-prometheus-stack")
		}
		require.NotContains(t, program(t, l, "helm", append([]string{"lint", "--strict", filepath.Join(root(t), "charts", "drydock")}, args...)...), "[WARNING]", name)
		require.NotContains(t, helm(t, l, "template", args...), "e+0", "%s: a number that Drydock does not read", name)
	}
}

// TestHelmTestRunsTheSelfTest: the API server accepts the pod. The pod has Drydock's own account
// and a command that the program has. No Service sends alerts to it.
func TestHelmTestRunsTheSelfTest(t *testing.T) {
	l := cluster(t)
	text := helm(t, l, "template", "--show-only", "templates/tests/selftest.yaml", "-f", ci(t, "names"))
	var pod corev1.Pod
	require.NoError(t, yaml.Unmarshal([]byte(text), &pod))
	require.Equal(t, "test", pod.Annotations["helm.sh/hook"])
	require.Equal(t, "repairer", pod.Spec.ServiceAccountName)
	require.Equal(t, []string{"selftest", "--config", "/etc/drydock/config/drydock.yaml"}, pod.Spec.Containers[0].Args)
	require.Equal(t, "nodes", pod.Labels["team"])
	require.NotEqual(t, deployment(t, m{"nameOverride": "repairs"}).Spec.Selector.MatchLabels["app.kubernetes.io/name"], pod.Labels["app.kubernetes.io/name"])
	namespace(t, l, "helm-test")
	_, err := l.Client().CoreV1().ServiceAccounts("helm-test").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "repairer"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.Namespace = "helm-test"
	isAdmitted(t, l, pod.ObjectMeta, corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
}

// TestDeployIsWhatKustomizeApplies, without Helm and with a token that Drydock generates.
func TestDeployIsWhatKustomizeApplies(t *testing.T) {
	l := cluster(t)
	t.Cleanup(func() { sweep(t, l, "drydock") })
	program(t, l, "kubectl", "apply", "--server-side", "-k", filepath.Join(root(t), "deploy"))
	d, err := l.Client().AppsV1().Deployments("drydock").Get(t.Context(), "drydock", metav1.GetOptions{})
	require.NoError(t, err)
	isAdmitted(t, l, d.ObjectMeta, d.Spec.Template)
	program(t, l, "kubectl", "apply", "--server-side", "-f", filepath.Join(root(t), "deploy", "kube-prometheus-stack.yaml"))
	for _, file := range []string{"drydock.yaml", "kube-prometheus-stack.yaml"} {
		require.NotContains(t, read(t, "deploy", file), "\ndata:\n  \"token\"", "a token in a file would be everybody's")
	}
}
