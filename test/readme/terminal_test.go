package readme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations/ledger"
)

type m = map[string]any

// root returns the path of the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := programs.ModuleRoot()
	require.NoError(t, err)
	return dir
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	require.NoError(t, err)
	return string(text)
}

// section returns the text of the page below that heading of the second level.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page(t, name), "\n## "+heading+"\n")
	require.True(t, found, "%s has no section %q", name, heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// blocks returns the fenced blocks of a language in a text.
func blocks(text, language string) (out []string) {
	for i, part := range strings.Split("\n"+text, "\n```") {
		if content, is := strings.CutPrefix(part, language+"\n"); is && i%2 == 1 {
			out = append(out, content)
		}
	}
	return out
}

// commands returns the commands in the page's section, each on one line.
func commands(t *testing.T, name, heading string) (out []string) {
	t.Helper()
	for _, block := range blocks(section(t, name, heading), "sh") {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// terminal is the terminal of a person who has the checkout, the file with the API key, and a
// cluster with kube-prometheus-stack.
type terminal struct {
	t       *testing.T
	lab     *lab.Lab
	dir     string
	env     []string
	drydock *lab.Process
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	l := lab.Shared(t)
	dir := t.TempDir()
	paths, err := programs.Build(t.Context(), os.Stderr, "kubectl", "helm")
	require.NoError(t, err)
	for name, path := range paths {
		require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	require.NoError(t, os.Symlink(filepath.Join(root(t), "charts"), filepath.Join(dir, "charts")))
	for _, name := range []string{"drydock", "kubectl-drydock"} {
		require.NoError(t, programs.Compile(t.Context(), filepath.Join(dir, name), "./cmd/"+name))
	}
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+l.AdminKubeconfig(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	s := &terminal{t: t, lab: l, dir: dir, env: env}
	ctx, cancel := context.WithCancel(t.Context())
	checks := make(chan struct{})
	t.Cleanup(func() { cancel(); <-checks })
	go func() { defer close(checks); s.runsChecks(ctx) }()
	return s
}

// runsChecks plays the kubelet for the pod of the chart's Job before each upgrade: it runs the real
// `drydock check` on the ConfigMap that the pod mounts.
func (s *terminal) runsChecks(ctx context.Context) {
	const release = "drydock"
	config := filepath.Join(s.dir, "checked.yaml")
	core := s.lab.Client().CoreV1()
	_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pods, listed := core.Pods(release).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + release + "-check"})
		mounted, read := core.ConfigMaps(release).Get(ctx, release+"-check", metav1.GetOptions{})
		ready := errors.Join(listed, read) == nil && os.WriteFile(config, []byte(mounted.Data["drydock.yaml"]), 0o600) == nil
		for i := 0; ready && i < len(pods.Items); i++ {
			pod := pods.Items[i]
			if pod.Status.Phase != corev1.PodPending {
				continue
			}
			pod.Status.Phase = corev1.PodFailed
			if exec.CommandContext(ctx, filepath.Join(s.dir, "drydock"), "check", "--skip-files", config).Run() == nil {
				pod.Status.Phase = corev1.PodSucceeded
			}
			_, _ = core.Pods(release).UpdateStatus(ctx, &pod, metav1.UpdateOptions{}) // if the pod has changed meanwhile, the next round ends it
		}
		return false, nil
	})
}

func (s *terminal) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// types runs a command and returns its output. The command must succeed.
func (s *terminal) types(line string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), lab.Patience)
	defer cancel()
	var out, faults bytes.Buffer
	cmd := s.command(ctx, line)
	cmd.Stdout, cmd.Stderr = &out, &faults
	require.NoError(s.t, cmd.Run(), "%s\n%s%s", line, &out, &faults)
	return out.String()
}

// reads reads an object of the cluster into the type that into points to.
func (s *terminal) reads(what string, into any) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(s.types("kubectl get -n drydock -o json "+what)), into), what)
}

// generated returns the value of the key in the Secret. It is empty until it is written.
func (s *terminal) generated(name, key string) string {
	s.t.Helper()
	var secret corev1.Secret
	s.reads("secret "+name, &secret)
	return string(secret.Data[key])
}

// secret returns a file with the value of the key in the Secret.
func (s *terminal) secret(name, key string) string {
	s.t.Helper()
	value := s.generated(name, key)
	require.NotEmpty(s.t, value, "the key %s of Secret %s", key, name)
	file, err := s.lab.WriteSecret("secret-"+name, value)
	require.NoError(s.t, err)
	return file
}

func (s *terminal) node(name string) *corev1.Node {
	s.t.Helper()
	n, err := s.lab.Client().CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return n
}

func (s *terminal) ledger() *ledger.Ledger {
	cm, err := s.lab.Client().CoreV1().ConfigMaps("drydock").Get(s.t.Context(), "drydock-ledger", metav1.GetOptions{})
	if err != nil {
		return &ledger.Ledger{} // the ledger does not exist yet
	}
	l, err := ledger.Decode(cm.Data)
	require.NoError(s.t, err)
	return l
}

// watches runs a command that ends with the test, and returns a function that returns its output so
// far.
func (s *terminal) watches(line string) (said func() string) {
	s.t.Helper()
	file, err := os.Create(filepath.Join(s.dir, "watched"))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	cmd := s.command(ctx, line)
	cmd.Stdout, cmd.Stderr = file, file
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() { cancel(); _ = cmd.Wait(); _ = file.Close() })
	return func() string {
		text, err := os.ReadFile(file.Name())
		require.NoError(s.t, err)
		return string(text)
	}
}
