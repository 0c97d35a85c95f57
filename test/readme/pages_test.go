package readme

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// prints compares the outputs in the pages with what is really printed, in this test and in the
// golden files.
func (s *terminal) prints(t *testing.T, receiver string, said ...string) {
	said = append(said, s.types("kubectl drydock status"), s.types("kubectl get lease drydock -n drydock"))

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+receiver+"/v1/alerts", strings.NewReader("{}"))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer wrong")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	said = append(said, string(body))

	faulty := strings.Replace(page(t, "internal/config/examples/smallest.yaml"), "mode: observe", "mode: watch\ncooldwon: 5m", 1)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "faulty.yaml"), []byte(faulty), 0o600))
	check := exec.CommandContext(t.Context(), filepath.Join(s.dir, "drydock"), "check", "faulty.yaml")
	check.Dir = s.dir
	faults, err := check.Output()
	require.Error(t, err)
	said = append(said, strings.ReplaceAll(string(faults), "faulty.yaml", "drydock.yaml"), s.lacksCertificate(t))

	holdPagesTo(t, said)
}

// asks requests a repair. Observe mode refuses the request, and the answer says what would have
// been done.
func (s *terminal) asks() (said string) {
	s.t.Helper()
	answer := s.types("kubectl drydock repair node-4 --with reboot")
	var refused string
	await(s.t, "the refusal", func() bool {
		refused = s.types("kubectl get events --field-selector reason=RequestRefused")
		return strings.Contains(refused, "Observing")
	})
	return answer + refused
}

// lacksCertificate returns what a replica prints that serves admission and has no certificate.
func (s *terminal) lacksCertificate(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join(s.dir, "drydock.yaml"))
	require.NoError(t, err)
	var c m
	require.NoError(t, yaml.Unmarshal(text, &c))
	listen := func() string {
		port, err := lab.FreePort()
		require.NoError(t, err)
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	health := listen()
	c["receiver"].(m)["listen"], c["metrics"], c["health"] = listen(), m{"listen": listen()}, m{"listen": health}
	c["webhook"] = m{"listen": listen(), "certDir": t.TempDir(), "certificates": "mounted"}
	text, err = yaml.Marshal(c)
	require.NoError(t, err)
	file := filepath.Join(s.dir, "webhook.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	kubeconfig, err := s.lab.ServiceAccountKubeconfig(t.Context(), "drydock", "drydock", "")
	require.NoError(t, err)
	p, err := lab.StartProcess(t.Context(), lab.Spec{
		Name: "drydock-webhook", Path: filepath.Join(s.dir, "drydock"), Args: []string{"run", "--config", file, "--kubeconfig", kubeconfig},
		Log: filepath.Join(s.lab.LogDir(), "drydock-webhook.log"), ReadyURL: "http://" + health + "/healthz",
	})
	require.NoError(t, err)
	defer p.Kill()
	var said string
	await(t, "a word on the certificate", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+health+"/readyz", nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		said = string(text)
		return res.StatusCode == http.StatusInternalServerError && strings.Contains(said, "tls.crt")
	})
	return strings.ReplaceAll(said, c["webhook"].(m)["certDir"].(string), "/var/run/drydock/certs")
}

// enforceHeading is the heading of the chapter in install.md with the policy to copy.
const enforceHeading = "Enforce one policy at a time"

// enforces switches policies to enforce, one at a time, as install.md describes.
func (s *terminal) enforces(t *testing.T) {
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "enforce.yaml"), []byte(blocks(section(t, "docs/install.md", enforceHeading), "yaml")[0]), 0o600))
	typed := commands(t, "docs/install.md", enforceHeading)
	require.Len(t, typed, 1)
	require.Contains(t, s.types(typed[0]), "Mode: enforce")
	var configuration corev1.ConfigMap
	s.reads("configmap drydock", &configuration)
	var c struct {
		Mode     string
		Policies []struct{ Name, Mode string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(configuration.Data["drydock.yaml"]), &c))
	require.Equal(t, "observe", c.Mode, "what was set at the install stays")
	require.Len(t, c.Policies, 1)
	require.Equal(t, "enforce", c.Policies[0].Mode)
	require.Equal(t, "node-not-ready", c.Policies[0].Name)
	require.True(t, s.evicts(t), "it may drain now")
}

func (s *terminal) evicts(t *testing.T) bool {
	roles, err := s.lab.Client().RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=drydock"})
	require.NoError(t, err)
	for _, r := range roles.Items {
		for _, rule := range r.Rules {
			if has(rule, "pods/eviction") {
				return true
			}
		}
	}
	return false
}

func has(rule rbacv1.PolicyRule, resource string) bool {
	for _, r := range rule.Resources {
		if r == resource {
			return true
		}
	}
	return false
}

// uninstalls follows the page about uninstalling. In the end nothing of Drydock's is left on any
// Node.
func (s *terminal) uninstalls(t *testing.T) {
	require.NoError(t, s.drydock.Stop(t.Context()))
	marked := func() (out []string) {
		nodes, err := s.lab.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, n := range nodes.Items {
			for key := range n.Annotations {
				if remediations.Relevant(key) {
					out = append(out, n.Name+" has "+key)
				}
			}
		}
		return out
	}
	require.NotEmpty(t, marked(), "the control: there is something to remove")
	for _, line := range commands(t, upgrade, "Uninstall") {
		s.types(line)
	}
	require.Empty(t, marked())
	nodes, err := s.lab.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, n := range nodes.Items {
		require.NotContains(t, n.Labels, remediations.PhaseLabel)
		require.False(t, n.Spec.Unschedulable, n.Name)
	}
	await(t, "the namespace to go", func() bool {
		return !strings.Contains(s.types("kubectl get namespaces"), "drydock")
	})
}

// plain runs install.md's commands for a Prometheus without the operator.
func (s *terminal) plain(t *testing.T) {
	typed := commands(t, "docs/install.md", "With a Prometheus of your own")
	require.Len(t, typed, 4)
	for _, line := range typed[:2] {
		s.types(line)
	}
	notes := s.types(typed[2])
	require.Contains(t, notes, "Mode: observe")
	require.Contains(t, notes, "receivers:\n  - name: drydock", "the route is printed")
	require.Contains(t, notes, "Let Prometheus scrape every pod of drydock.drydock:8080/metrics")
	drydock, err := s.lab.ClientAs("system:serviceaccount:drydock:drydock", "system:serviceaccounts", "system:serviceaccounts:drydock", "system:authenticated")
	require.NoError(t, err)
	own := kube.NewOwnSecret(drydock, types.NamespacedName{Namespace: "drydock", Name: "drydock-token"}, "token", clock.RealClock{}, logr.Discard())
	go func() { _ = own.Start(t.Context()) }() // as the first pod would do
	await(t, "the generated token", func() bool { return own.Value() != "" })
	require.Equal(t, own.Value(), s.types(typed[3]), "the token")
}
