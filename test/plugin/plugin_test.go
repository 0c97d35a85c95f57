// Package plugin runs the built kubectl-drydock as people do: with the real kubectl, which finds it
// on the PATH, and a real API server. No Drydock runs. The tests write the records that Drydock
// would write.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Nodes: 6})
}

// terminal is a person's terminal: the lab, and the user that is logged in.
type terminal struct {
	t          *testing.T
	lab        *lab.Lab
	kubectl    string
	path       string // the folder that contains the plugin
	kubeconfig string
}

var built struct {
	sync.Once
	kubectl, plugin string
	err             error
}

// newTerminal returns an administrator's terminal. Drydock's ledger shows nothing special, and no
// node has a repair.
func newTerminal(t *testing.T) *terminal {
	t.Helper()
	l := lab.Shared(t)
	built.Do(func() {
		paths, err := programs.Build(context.WithoutCancel(t.Context()), os.Stderr, "kubectl")
		if err != nil {
			built.err = err
			return
		}
		built.kubectl = paths["kubectl"]
		built.plugin = filepath.Join(filepath.Dir(l.AdminKubeconfig()), "plugins")
		built.err = programs.Compile(t.Context(), filepath.Join(built.plugin, "kubectl-drydock"), "./cmd/kubectl-drydock")
	})
	require.NoError(t, built.err)
	s := &terminal{t: t, lab: l, kubectl: built.kubectl, path: built.plugin, kubeconfig: l.AdminKubeconfig()}
	s.settle()
	return s
}

// settle removes what earlier tests left on the nodes, and writes a ledger without repairs or
// holds.
func (s *terminal) settle() {
	s.t.Helper()
	require.NoError(s.t, s.lab.Forget(s.t.Context(), &ledger.Ledger{Status: ledger.Status{Mode: remediations.ModeEnforce}}))
}

func (s *terminal) ledger(l *ledger.Ledger) {
	s.t.Helper()
	require.NoError(s.t, s.lab.WriteLedger(s.t.Context(), l))
}

func (s *terminal) patch(node string, annotations, labels map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations, "labels": labels}})
	require.NoError(s.t, err)
	_, err = s.lab.Client().CoreV1().Nodes().Patch(context.WithoutCancel(s.t.Context()), node, types.MergePatchType, text, metav1.PatchOptions{FieldManager: remediations.FieldManager})
	require.NoError(s.t, err)
}

// record writes a repair on the node, as Drydock does: the record and the phase label in one PATCH.
func (s *terminal) record(node, id string, phase remediations.Phase) *remediations.Record {
	s.t.Helper()
	at := time.Now().UTC().Truncate(time.Second)
	r := &remediations.Record{
		V: 1, ID: id, Policy: "node-not-ready", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: phase,
		Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: at, Since: at, Deadline: at.Add(time.Hour),
	}
	if phase != remediations.PhasePending {
		r.Intent = &remediations.Intent{ID: id + "-0-1", At: at}
		r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
	}
	s.patch(node, map[string]any{remediations.NodeRepairKey: r.Encode()}, map[string]any{remediations.PhaseLabel: string(phase)})
	return r
}

func (s *terminal) node(name string) *corev1.Node {
	s.t.Helper()
	n, err := s.lab.Client().CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return n
}

// as returns a terminal of a service account with these rules. It connects through server or, if
// server is empty, to the API server itself.
func (s *terminal) as(name, rules, server string) *terminal {
	s.t.Helper()
	kubeconfig, err := s.lab.PersonKubeconfig(s.t.Context(), name, rules, server)
	require.NoError(s.t, err)
	other := *s
	other.kubeconfig = kubeconfig
	return &other
}

func (s *terminal) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.kubectl, append([]string{"drydock"}, args...)...)
	cmd.Env = []string{"PATH=" + s.path, "HOME=" + s.t.TempDir(), "KUBECONFIG=" + s.kubeconfig}
	return cmd
}

// run runs `kubectl drydock` with the arguments.
func (s *terminal) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), lab.Patience)
	defer cancel()
	var out, problems bytes.Buffer
	cmd := s.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s.t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), problems.String()
}

func (s *terminal) typed(line string) (code int, stdout, stderr string) {
	s.t.Helper()
	return s.run(strings.Fields(line)...)
}
