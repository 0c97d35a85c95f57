package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

const (
	namespace = "mesh-agents"
	key       = "a-key-of-the-tests-that-is-no-secret-at-all"
)

// process is the program as a process of its own.
type process struct {
	cmd     *exec.Cmd
	metrics string
	mu      sync.Mutex
	log     bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// start runs the program on a node, with a probe port.
func start(t *testing.T, node string, port int, kubeconfig, keyFile string) *process {
	t.Helper()
	metrics, err := lab.FreePort()
	require.NoError(t, err)
	p := &process{metrics: fmt.Sprintf("http://127.0.0.1:%d", metrics)}
	p.cmd = exec.CommandContext(t.Context(), os.Args[0], "run", "--namespace", namespace, "--service", "agents", "--listen", fmt.Sprintf(":%d", port),
		"--metrics", fmt.Sprintf("127.0.0.1:%d", metrics), "--key-file", keyFile, "--kubeconfig", kubeconfig, "--interval", "1s")
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "NODE_NAME="+node)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", node, p.text())
		}
	})
	return p
}

// get returns the code and the body of an answer. The code is 0 if there is no answer.
func (p *process) get(t *testing.T, path string) (int, string) {
	t.Helper()
	answer, err := http.Get(p.metrics + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

// words are the values of drydock_mesh_probe_success by target and protocol.
func (p *process) words(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	_, body := p.get(t, "/metrics")
	for _, m := range regexp.MustCompile(`(?m)^drydock_mesh_probe_success\{.*dst_node="([^"]+)",dst_role="([^"]+)",path="([^"]+)",proto="([^"]+)".*\} (\d)$`).FindAllStringSubmatch(body, -1) {
		out[strings.Join(m[1:5], " ")] = m[5]
	}
	return out
}

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 5*time.Minute, 100*time.Millisecond, what)
}

// stop sends SIGTERM and requires a clean end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.cmd.Wait(), "%s", p.text())
}

// ownAddress is one of this machine's that an EndpointSlice may hold.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback's, which an EndpointSlice may not hold")
	return ""
}

// rights are all that the agent needs.
func rights(t *testing.T) (kubeconfig string) {
	t.Helper()
	l := lab.Shared(t)
	kubeconfig, err := l.ServiceAccountKubeconfig(t.Context(), namespace, "agent", "")
	require.NoError(t, err)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "agent", Namespace: namespace}}
	read := []string{"get", "list", "watch"}
	rbac := l.Client().RbacV1()
	meta := metav1.ObjectMeta{Name: "mesh-agent", Namespace: namespace}
	cluster := metav1.ObjectMeta{Name: "mesh-agent"}
	_, err = rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: cluster, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: read}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: cluster, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mesh-agent"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: read}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "mesh-agent"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return kubeconfig
}

// join makes the Node of an agent, and the EndpointSlice that says where it listens.
func join(t *testing.T, node, location, address string, port int) {
	t.Helper()
	client := lab.Shared(t).Client()
	_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{election.DefaultTopologyLabel: location}, Annotations: map[string]string{
			election.EndpointKey: "10.1.0.1:51820", election.InternalIPKey: "10.1.0.1/32", election.GranularityKey: "location",
			election.PublicKeyKey: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
			election.LastSeenKey:  strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10), // only its age counts, and the test may take long
		}},
		Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "agents-" + node, Labels: map[string]string{discoveryv1.LabelServiceName: "agents"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, NodeName: &node}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("probe-tcp"), Port: ptr.To(int32(port))}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func writeKey(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestAgentsProbeEachOther: three processes have only the rights that they need. The end of one is
// not a loss of forwarding.
func TestAgentsProbeEachOther(t *testing.T) {
	address, kubeconfig, keyFile := ownAddress(t), rights(t), writeKey(t, key)
	agents := map[string]*process{}
	for node, location := range map[string]string{"east-1": "east", "east-2": "east", "west-1": "west"} {
		port, err := lab.FreePort()
		require.NoError(t, err)
		join(t, node, location, address, port)
		agents[node] = start(t, node, port, kubeconfig, keyFile)
	}
	for _, p := range agents {
		within(t, "ready", func() bool { code, _ := p.get(t, "/readyz"); return code == http.StatusOK })
	}
	want := map[string]map[string]string{
		"east-1": {"east-2 member local tcp": "1", "east-2 member local udp": "1", "west-1 leader cross tcp": "1", "west-1 leader cross udp": "1"},
		"east-2": {"east-1 leader local tcp": "1", "east-1 leader local udp": "1", "west-1 leader cross tcp": "1", "west-1 leader cross udp": "1"},
		"west-1": {"east-1 leader cross tcp": "1", "east-1 leader cross udp": "1", "east-2 member cross tcp": "1", "east-2 member cross udp": "1"},
	}
	for node, words := range want {
		within(t, node+" has its words", func() bool { return fmt.Sprint(agents[node].words(t)) == fmt.Sprint(words) })
	}
	_, body := agents["east-1"].get(t, "/metrics")
	require.Contains(t, body, "\ndrydock_mesh_agent_peers 2\n")
	require.Contains(t, body, "\ndrydock_mesh_agent_build_info{version=")
	require.NotContains(t, body, key)

	agents["east-2"].stop(t)
	var bad []string // about east-2 alone: another agent may have been late
	within(t, "the words about one that ended are forgotten", func() bool {
		words, about := agents["west-1"].words(t), 0
		for of, word := range words {
			if strings.HasPrefix(of, "east-2 ") {
				about++
				if word == "0" {
					bad = append(bad, of)
				}
			}
		}
		return len(words) == 2 && about == 0
	})
	require.Empty(t, bad)
	for _, node := range []string{"east-1", "west-1"} {
		agents[node].stop(t)
	}
	for node, p := range agents {
		require.Contains(t, p.text(), `msg="Drydock's agent runs"`, node)
		require.NotContains(t, p.text(), key)
		require.NotContains(t, p.text(), "level=error", node)
	}
}

// TestReadyWaitsForTheAPIServerOnly: the agent answers probes meanwhile, and the kubelet has no
// cause to restart it.
func TestReadyWaitsForTheAPIServerOnly(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u}]
current-context: c
`), 0o600))
	port, err := lab.FreePort()
	require.NoError(t, err)
	p := start(t, "n1", port, kubeconfig, writeKey(t, key))
	within(t, "healthy", func() bool { code, _ := p.get(t, "/healthz"); return code == http.StatusOK })
	code, body := p.get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	within(t, "it says what is missing", func() bool {
		_, body = p.get(t, "/readyz")
		return body == "not read yet: Nodes, EndpointSlices of the Service mesh-agents/agents\n"
	})
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	_ = c.Close()
	p.stop(t)
}

func TestItRefusesToStart(t *testing.T) {
	port, err := lab.FreePort()
	require.NoError(t, err)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	kubeconfig := lab.Shared(t).AdminKubeconfig()
	free := fmt.Sprintf("127.0.0.1:%d", port)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an empty key file":    {[]string{"--key-file", writeKey(t, "\n")}, "the file is empty; make a key with: head -c 32 /dev/urandom | base64"},
		"a short key":          {[]string{"--key-file", writeKey(t, "secret")}, "the key in line 1 has 6 characters instead of at least 32; make a key with: head -c 32 /dev/urandom | base64"},
		"no key file":          {[]string{"--key-file", "/nonexistent"}, "reading the key file: "},
		"no kubeconfig":        {[]string{"--key-file", writeKey(t, key), "--kubeconfig", "/nonexistent"}, "reading --kubeconfig /nonexistent: "},
		"a taken probe port":   {[]string{"--key-file", writeKey(t, key), "--listen", taken.Addr().String()}, "opening the probe port: "},
		"a taken metrics port": {[]string{"--key-file", writeKey(t, key), "--metrics", taken.Addr().String()}, "opening the metrics server's port: "},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"run", "--node-name", "n1", "--namespace", namespace, "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--metrics", free}, c.args...)...)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			output, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, cli.ExitFailed, cmd.ProcessState.ExitCode())
			stderr := string(output)
			require.Contains(t, stderr, c.want)
			require.NotContains(t, stderr, "secret")
		})
	}
	code, _, stderr := call(t, "run", "--node-name", "n1", "--namespace", namespace, "--key-file", writeKey(t, key))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "not running in a pod")
}
