package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// TestAShownCommandAsksTheClusterThatWasAsked: also a command in a text that Drydock wrote in the
// cluster, and in every format. The same call without flags is the control.
func TestAShownCommandAsksTheClusterThatWasAsked(t *testing.T) {
	waits := record("bbbbbb", remediations.PhasePending, held(remediations.ReasonAwaitingApproval,
		"policy p needs a person's approval: kubectl drydock approve n, or kubectl annotate node n drydock.dev/approve=bbbbbb", time.Time{}))
	d := newDesk(t, exhausted("node-4", "cccccc", "p"), node("m", nil), under("n", waits), ledgerOf(calmLedger()))
	flags := []string{"--context", "it's prod", "--kubeconfig", "/tmp/a b", "--as", "ops", "--as-group", "g1", "--as-group", "g2", "-n", "drydock", "--token", "secret"}
	const all = `--as ops --as-group g1 --as-group g2 --context 'it'\''s prod' --kubeconfig '/tmp/a b'`
	for args, commands := range map[string][2]string{
		"why node-4 --ledger drydock-ledger": {"kubectl drydock reset node-4", "kubectl drydock " + all + " -n drydock reset node-4"},
		"why n":                              {"kubectl drydock approve n", "kubectl drydock " + all + " -n drydock approve n"},
		"status n -o wide":                   {"kubectl annotate node n", "kubectl " + all + " annotate node n"},
		"status n -o jsonpath={.repairs[0].record.hold.message}": {"kubectl annotate node n", "kubectl " + all + " annotate node n"},
		"pause m":             {"until `kubectl drydock resume m`", "until `kubectl drydock " + all + " -n drydock resume m`"},
		"cancel node-4":       {"`kubectl drydock reset node-4`", "`kubectl drydock " + all + " -n drydock reset node-4`"},
		"reset --policy mine": {"`kubectl drydock status`", "`kubectl drydock " + all + " -n drydock status`"},
	} {
		_, stdout, stderr := d.run(strings.Fields(args)...)
		require.Contains(t, stdout+stderr, commands[0], args)
		require.NotContains(t, stdout+stderr, "--context", args)
		_, stdout, stderr = d.run(append(strings.Fields(args), flags...)...)
		require.Contains(t, stdout+stderr, commands[1], args)
		require.NotContains(t, stdout+stderr, commands[0], args)
		require.NotContains(t, stdout+stderr, "secret", args)
	}
	for _, format := range []string{"json", "yaml"} {
		_, stdout, _ := d.run(append([]string{"status", "n", "-o", format}, flags...)...)
		var facts inspect.Status
		require.NoError(t, yaml.Unmarshal([]byte(stdout), &facts), format)
		require.Contains(t, facts.Repairs[0].Record.Hold.Message, "kubectl "+all+" annotate node n", format)
	}
	_, stdout, _ := d.run("why", "node-4", "--ledger", "other")
	require.Contains(t, stdout, "kubectl drydock reset node-4", "reset has no flag --ledger")
	_, stdout, _ = d.run("pause", "m", "-n", "drydock")
	require.Contains(t, stdout, "`kubectl drydock -n drydock status`")
}

// TestAShownCommandIsUnderstood: the plugin takes its flags before the command's name.
func TestAShownCommandIsUnderstood(t *testing.T) {
	d := newDesk(t, exhausted("node-4", "cccccc", "p"), ledgerIn("elsewhere", calmLedger().Encode()))
	commands := inspect.Commands{Kubectl: []string{"--context", "prod"}, Plugin: map[string][]string{"status": {"-n", "elsewhere", "--ledger", "drydock-ledger"}}}
	shown := commands.In("`kubectl drydock status` shows it")
	require.Equal(t, "`kubectl drydock --context prod -n elsewhere --ledger drydock-ledger status` shows it", shown)
	require.Equal(t, shown, commands.In(shown), "no flag is given twice")
	code, stdout, stderr := d.run(strings.Fields(strings.Split(shown, "`")[1])[2:]...)
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "node-4")
}

// TestAWriteNamesItsCluster, by its context and its server, whether it was done or refused.
func TestAWriteNamesItsCluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPatch || strings.HasSuffix(r.URL.Path, "/refused") {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: 403, Message: "no"})
			return
		}
		n := node("n", nil)
		n.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		_ = json.NewEncoder(w).Encode(n)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"staging",
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}],
"contexts":[{"name":"staging","context":{"cluster":"c","user":"u"}},{"name":"prod","context":{"cluster":"c","user":"u"}}]}`, server.URL), 0o600))
	d := newDesk(t)
	d.plugin.connect = d.plugin.connectByFlags
	for context, args := range map[string][]string{"staging": nil, "prod": {"--context", "prod"}} {
		args = append(args, "--kubeconfig", kubeconfig)
		code, stdout, stderr := d.run(append(args, "pause", "n")...)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, stdout, "Cluster "+context+" ("+server.URL+"): n is paused")
		code, _, stderr = d.run(append(args, "pause", "refused")...)
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, stderr, "error: Cluster "+context+" ("+server.URL+"): pausing refused was refused")
		*d.plugin.flags.Context = ""
	}
	require.Equal(t, "prod (https://host:6443)", inspect.NewCluster("prod", "https://user:secret@host:6443").String())
	require.Equal(t, "prod", inspect.NewCluster("prod", "https://user:secret%zz@host:6443").String())
}

// TestAServersWarningSteersNoTerminal: it is shown as kubectl shows it. Others may have written it,
// for example in an admission policy.
func TestAServersWarningSteersNoTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", "299 - \"a policy says \u202esey\"")
		n := node("n", nil)
		n.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		_ = json.NewEncoder(w).Encode(n)
	}))
	t.Cleanup(server.Close)
	d := newDesk(t)
	d.plugin.connect = d.plugin.connectByFlags
	code, _, stderr := d.run("pause", "n", "--kubeconfig", kubeconfigOf(t, server.URL))
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, "Warning: a policy says \ufffdsey\n", stderr)
}

// TestNoErrorQuotesAKubeconfigsPassword: it may be in the API server's address, and the parser of
// URLs quotes an address that it cannot read.
func TestNoErrorQuotesAKubeconfigsPassword(t *testing.T) {
	for server, says := range map[string]string{
		"https://u:hunter2%zz@host":     "finding the cluster: the API server's address in the kubeconfig is not a URL",
		"https://u:hunter2 x@host":      "finding the cluster: the API server's address in the kubeconfig is not a URL",
		"https://u:hunter2@127.0.0.1:1": "connection refused",
	} {
		for _, args := range [][]string{{"pause", "n"}, {"status"}, {"why", "n"}, {"can-i"}, {"version"}} {
			d := newDesk(t)
			d.plugin.connect = d.plugin.connectByFlags
			code, stdout, stderr := d.run(append(args, "--kubeconfig", kubeconfigOf(t, server))...)
			require.Equal(t, cli.ExitFailed, code, "%s %s", args, stdout)
			require.Contains(t, stderr, says, args)
			require.NotContains(t, stdout+stderr, "hunter2", args)
		}
	}
}

// kubeconfigOf is a file with one context for that server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
"users":[{"name":"u","user":{}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, server), 0o600))
	return file
}
