package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// strangers builds Drydock with one additional provider, as a person would add it: a line in the
// list of sections, and a line in the list of providers. The rest of the program is the same.
func strangers(t *testing.T) string {
	t.Helper()
	root, err := programs.ModuleRoot()
	require.NoError(t, err)
	folder := t.TempDir()
	replace := map[string]string{}
	for file, lines := range map[string]map[string]string{
		"internal/config/sections.go": {
			"import (\n":                          "\tbmc \"drydock.dev/drydock/test/e2e/bmc/settings\"\n",
			"var sections = []section.Section{\n": "\tbmc.Section,\n",
		},
		"cmd/drydock/wire.go": {
			"import (\n":                    "\t\"drydock.dev/drydock/test/e2e/bmc\"\n",
			"var providers = []provider{\n": "\t{\"bmc\", func(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) { return bmc.Steps(p.cfg.Providers[\"bmc\"]) }},\n",
		},
	} {
		data, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		text := string(data)
		for behind, line := range lines {
			require.Equal(t, 1, strings.Count(text, behind), "%s: %q", file, behind)
			text = strings.Replace(text, behind, behind+line, 1)
		}
		own := filepath.Join(folder, filepath.Base(file))
		require.NoError(t, os.WriteFile(own, []byte(text), 0o600))
		replace[filepath.Join(root, file)] = own
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	program := filepath.Join(folder, "drydock-with-bmc")
	require.NoError(t, programs.Compile(t.Context(), program, "./cmd/drydock", "-overlay="+file))
	return program
}

// boards are the machines of the test's provider. A reboot is answered when the test allows it.
type boards struct {
	*httptest.Server
	asked  chan string // receives a board that is about to be rebooted
	answer chan struct{}
	letGo  func()

	mu   sync.Mutex
	seen []string
}

func newBoards(y *yard, nodes map[string]string) *boards {
	b := &boards{asked: make(chan string, 1), answer: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.Trim(r.URL.Path, "/")
		b.mu.Lock()
		b.seen = append(b.seen, r.Method+" "+id)
		b.mu.Unlock()
		node, known := nodes[id]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodPost:
			b.asked <- id
			<-b.answer
			y.lab.Off(node)
			if err := y.lab.On(context.WithoutCancel(r.Context()), node, uuid.NewString(), true); err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	b.letGo = sync.OnceFunc(func() { close(b.answer) })
	y.t.Cleanup(func() { b.letGo(); b.Close() })
	return b
}

// Nodes of two providers are unhealthy at the same time, and one node of a provider that is not
// configured. Each of the two is rebooted by its own provider, which is never asked about the
// other's nodes. The limits count both. No provider reboots the third node.
func TestTwoProvidersServeOneInstallation(t *testing.T) {
	y := newYard(t)
	for name, id := range map[string]string{"bmc-0": "bmc://rack-0", "aws-0": "aws:///eu-1a/i-0"} {
		require.NoError(t, y.lab.AddNode(t.Context(), lab.NodeSpec{Name: name, ProviderID: id}))
		t.Cleanup(func() {
			require.NoError(t, y.lab.Client().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
		})
	}
	b := newBoards(y, map[string]string{"rack-0": "bmc-0"})
	program := strangers(t)
	d := y.run(lab.DrydockOptions{Program: program, Config: map[string]any{
		"providers": map[string]any{"bmc": map[string]any{"url": b.URL}},
		"limits":    map[string]any{"concurrent": 1, "startupGrace": "0s"},
		"policies":  []any{policy(nil)},
	}})
	check, err := exec.CommandContext(t.Context(), program, "check", d.ConfigFile, "--kubeconfig", y.lab.AdminKubeconfig()).Output()
	require.NoError(t, err)
	require.Contains(t, string(check), "providers.bmc carries out reboot for Nodes whose spec.providerID begins with bmc://\n")
	require.Contains(t, string(check), "providers.civo carries out reboot, replace for Nodes whose spec.providerID begins with civo://\n")
	require.Regexp(t, `: reboot: civo on \d+ Nodes \([^)]*, …\), bmc on 1 Node \(bmc-0\), no provider on 1 Node \(aws-0\)\n`, string(check))
	require.Contains(t, string(check), "warning: the namespace medik8s-leases exists", "and nothing is announced there")

	y.fail("aws-0")
	y.held("aws-0", remediations.ReasonProviderAbsent)
	y.fail("bmc-0")
	select {
	case id := <-b.asked:
		require.Equal(t, "rack-0", id)
	case <-time.After(lab.Patience):
		require.Fail(t, "no board was told to reboot its machine", "%v", drydocks(y.node("bmc-0")))
	}
	y.fail("node-70")
	y.ledger("the limit holds the other node", func(l *ledger.Ledger) bool { return l.Status.Holds[remediations.ReasonAtLimit] != "" })
	require.Zero(t, y.reboots("node-70"), "the limit counts the other provider's repair")
	b.letGo()

	for _, name := range []string{"bmc-0", "node-70"} {
		e := y.ended(name)
		require.Equal(t, remediations.OutcomeRecovered, e.Outcome, "%s: %s", name, e.Why)
		require.Equal(t, []string{"reboot:1"}, e.Steps.Texts(), name)
	}
	require.Equal(t, 1, y.reboots("node-70"))
	require.Len(t, y.civo.Done(civosim.Any), 1, "and that is all that Civo was told to do")
	require.Contains(t, y.held("aws-0", remediations.ReasonProviderAbsent).Hold.Message, `no provider serves Node aws-0 for the step reboot: its spec.providerID is "aws:///eu-1a/i-0", and bmc serves Nodes whose spec.providerID begins with bmc://, civo serves`)
	b.mu.Lock()
	defer b.mu.Unlock()
	posts := 0
	for _, s := range b.seen {
		require.Contains(t, []string{"GET rack-0", "POST rack-0"}, s)
		if s == "POST rack-0" {
			posts++
		}
	}
	require.Equal(t, 1, posts)
	for _, c := range y.civo.CallsTo(civosim.Any) {
		require.NotContains(t, c.Path, "rack-0")
		require.NotContains(t, c.Path, "i-0")
	}
}
