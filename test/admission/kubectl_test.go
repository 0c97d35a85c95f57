package admission

import (
	"bytes"
	"io"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/test/admission/requests"
)

var kubectlPath = sync.OnceValues(func() (string, error) {
	paths, err := programs.Build(bg, io.Discard, "kubectl")
	return paths["kubectl"], err
})

// kubectl is the real kubectl, used by the administrator of the table of requests.
type kubectl struct {
	t          *testing.T
	kubeconfig string
}

func newKubectl(t *testing.T, l *lab.Lab) kubectl {
	t.Helper()
	path, err := l.UserKubeconfig(requests.Person.Name, "system:masters")
	require.NoError(t, err)
	return kubectl{t, path}
}

// run returns everything that the command printed, and whether it succeeded.
func (k kubectl) run(args ...string) (string, bool) {
	k.t.Helper()
	path, err := kubectlPath()
	require.NoError(k.t, err)
	var out bytes.Buffer
	cmd := exec.CommandContext(k.t.Context(), path, append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err == nil
}

func (k kubectl) does(args ...string) string {
	k.t.Helper()
	out, ok := k.run(args...)
	require.True(k.t, ok, "kubectl %v: %s", args, out)
	return out
}

// isDenied checks kubectl's output and not only its exit code: a denied `kubectl cordon` exits with
// 0.
func (k kubectl) isDenied(args ...string) string {
	k.t.Helper()
	out, _ := k.run(args...)
	require.Regexp(k.t, "denied (the )?request", out, "kubectl %v", args)
	return out
}
