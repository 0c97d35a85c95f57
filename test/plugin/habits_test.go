package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestKubectlCompletesThePlugin: kubectl's own completion finds the plugin by the name of its
// completion program.
func TestKubectlCompletesThePlugin(t *testing.T) {
	s := newTerminal(t)
	run := func(line ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), s.kubectl, append([]string{"__complete", "drydock"}, line...)...)
		cmd.Env = []string{"PATH=" + s.path, "HOME=" + t.TempDir(), "KUBECONFIG=" + s.kubeconfig}
		out, err := cmd.Output()
		return string(out), err
	}
	complete := func(line ...string) string {
		out, err := run(line...)
		require.NoError(t, err)
		return out
	}
	asks := func(want string, line ...string) { // if the API server takes more than three seconds, nothing is completed
		require.Eventually(t, func() bool {
			out, err := run(line...)
			return err == nil && regexp.MustCompile(want).MatchString(out)
		}, lab.Patience, 100*time.Millisecond, "%v", line)
	}
	require.NotContains(t, complete("pause", ""), "node-3", "the control: without that name nothing is found")
	other := filepath.Join(s.path, "kubectl_complete-drydock")
	require.NoError(t, os.Symlink("kubectl-drydock", other))
	t.Cleanup(func() { require.NoError(t, os.Remove(other)) })
	asks("^node-3\n:4\n$", "pause", "node-3")
	require.Contains(t, complete("pau"), "pause")
	require.Contains(t, complete("repair", "node-3", "--with", ""), "reboot\n")
	asks("node-not-ready\n", "repair", "node-3", "--policy", "")
}

// TestADryRunWritesNothing. It is refused if the real write would be refused.
func TestADryRunWritesNothing(t *testing.T) {
	s := newTerminal(t)
	before := s.versions()
	code, stdout, stderr := s.typed("pause node-0 node-1 --dry-run=server")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, 2, strings.Count(stdout, "(server dry run: nothing was written)\n"))
	require.Equal(t, before, s.versions())

	code, _, stderr = s.as("reader", readOnly, "").typed("pause node-0 --dry-run=server")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "cannot patch resource")

	code, _, stderr = s.typed("pause -l kubernetes.io/hostname=node-0")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "true", s.node("node-0").Annotations[remediations.PauseKey], "the control")
	require.NotContains(t, s.node("node-1").Annotations, remediations.PauseKey)
}

func TestColumnsAreChosenAsWithKubectl(t *testing.T) {
	s := newTerminal(t)
	s.record("node-1", "aaaaaa", remediations.PhaseVerifying)
	code, stdout, stderr := s.run("status", "-o", "custom-columns=NODE:.node,PHASE:.record.phase")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "NODE     PHASE\nnode-1   Verifying\n", stdout)
	code, stdout, stderr = s.run("status", "-o", "jsonpath={.repairs[0].record.id}")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "aaaaaa", stdout)
}
