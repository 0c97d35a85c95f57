package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
)

func TestCheckSaysOkAndWarnings(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"webhook: {exempt: {groups: [\"system:authenticated\"]}}\n")
	code, stdout, stderr := call(t, "check", file)
	require.Equal(t, cli.ExitOK, code)
	require.Empty(t, stderr)
	require.Contains(t, stdout, file+": ok\n"+file+":5: warning: webhook.exempt.groups[0]: ")
	require.Contains(t, stdout, "warning: policies: replace will be skipped in shipped policies: no provider for it is configured; add providers.civo, providers.clusterAPI, providers.karpenter or providers.http.replace (ProviderAbsent)\n")
	require.Contains(t, stdout, "warning: policies: reboot will be skipped in shipped policies: no provider for it is configured; add providers.civo, providers.hosts.reboot, providers.redfish, providers.annotation, providers.http.reboot or providers.fence (ProviderAbsent)\n")
	require.Contains(t, stdout, "can do nothing, none of their steps can be carried out: cilium-agent-not-ready, ")
	require.Less(t, strings.Count(stdout, "\n"), 10, "what is shipped does not hide what the person wrote")
}

// TestCheckWarnsOfShippedPoliciesOnlyWhereNothingIsRepaired: providers that one installation lacks
// are one line, and not a warning.
func TestCheckWarnsOfShippedPoliciesOnlyWhereNothingIsRepaired(t *testing.T) {
	for providers, says := range map[string]struct{ has, never string }{
		"":                             {"warning: policies: reboot will be skipped in shipped policies: ", "not used"},
		"providers: {karpenter: {}}\n": {": not used, because no provider for them is configured: shipped policies ", "warning: "},
		"providers: {hosts: {user: d, keyFile: token, knownHostsFile: token}}\n": {": not used, because no provider for them is configured: shipped policies ", "warning: "},
	} {
		code, stdout, _ := call(t, "check", "--skip-files", write(t, "drydock.yaml", sound+providers))
		require.Equal(t, cli.ExitOK, code, stdout)
		require.Contains(t, stdout, says.has)
		require.NotContains(t, stdout, says.never)
	}
}

// TestCheckReadsStandardInput: the same configuration by file and by -, sound and faulty.
func TestCheckReadsStandardInput(t *testing.T) {
	file := write(t, "drydock.yaml", sound)
	t.Chdir(filepath.Dir(file)) // where the token is
	for _, text := range []string{sound, sound + "cooldwon: 5m\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		codeOfFile, byFile, _ := call(t, "check", file)
		root := newRootCommand()
		root.SetIn(strings.NewReader(text))
		var out, problems bytes.Buffer
		code := command.Execute(t.Context(), root, []string{"check", "-"}, &out, &problems)
		require.Equal(t, codeOfFile, code)
		require.Empty(t, problems.String())
		require.Equal(t, byFile, strings.ReplaceAll(out.String(), "stdin:", file+":"))
	}
}

// TestCheckSaysWhoServesWhat: check lists each provider with its steps and its Nodes.
func TestCheckSaysWhoServesWhat(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"providers: {civo: {clusterID: c, region: r, apiKeyFile: token}, daemonSets: {cni: kube-system/cilium}, kilo: {}}\n")
	code, stdout, _ := call(t, "check", file)
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, stdout, file+": ok\n"+
		file+": providers.civo carries out reboot, replace for Nodes whose spec.providerID begins with civo://\n"+
		file+": providers.kilo carries out promote-leader for its own targets\n"+
		file+": providers.daemonSets carries out restart-cni for any Node\n")
}

// TestCheckSaysWhoServesMetal: a provider that has a list of Nodes serves those alone.
func TestCheckSaysWhoServesMetal(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"providers: {redfish: {usernameFile: token, passwordFile: token, bmcs: [{node: metal-1, url: \"https://192.0.2.21\", fingerprint: "+strings.Repeat("ab", 32)+"}]}}\n")
	code, stdout, _ := call(t, "check", file)
	require.Equal(t, cli.ExitOK, code, stdout)
	require.Contains(t, stdout, file+": ok\n"+file+": providers.redfish carries out reboot for the 1 Node it names\n")
}

func TestCheckPrintsEveryFault(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"mode: enforced\nlimit: {}\n")
	code, stdout, stderr := call(t, "check", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Empty(t, stderr)
	require.Equal(t, file+`:5: mode: "enforced" is not one of observe, enforce; did you mean "enforce"?
`+file+`:6: limit: unknown key; did you mean "limits"?
`, stdout)
}

func TestCheckLooksAtFiles(t *testing.T) {
	file := write(t, "drydock.yaml", "apiVersion: drydock.dev/v1alpha1\nkind: Config\nreceiver: {tokenFile: gone}\nalertmanager: {urls: [\"http://alertmanager:9093\"]}\n")
	code, stdout, _ := call(t, "check", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, file+`:3: receiver.tokenFile: file "`+filepath.Join(filepath.Dir(file), "gone")+`" does not exist; create it or correct the name`+"\n", stdout)

	code, stdout, _ = call(t, "check", "testdata/no-such-file.yaml")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, "testdata/no-such-file.yaml:1: document: cannot be read: no such file or directory\n", stdout)
}

// TestCheckNamesTheClusterThatItCannotRead: the configuration is judged first.
func TestCheckNamesTheClusterThatItCannotRead(t *testing.T) {
	file := write(t, "drydock.yaml", sound)
	code, stdout, stderr := call(t, "check", file, "--kubeconfig", filepath.Join(filepath.Dir(file), "gone"))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stdout, file+": ok\n")
	require.Contains(t, stderr, "reading --kubeconfig "+filepath.Join(filepath.Dir(file), "gone"))
}

// everyClient is a configuration with a provider of each kind that keeps rules of its own, each at
// its limit.
func everyClient(t *testing.T, knownHosts string) string {
	t.Helper()
	file := write(t, "drydock.yaml", strings.Replace(sound, "http://alertmanager:9093", `http://alertmanager.xn--bcher-kva.example", "http://alertmanager:80`, 1)+`stateDir: `+t.TempDir()+`
controlPlane:
  caFile: ca.crt
  hosts: [{name: cp-1, addresses: [192.0.2.1, 192.0.2.2, "2001:db8::1", "2001:db8::2"]}]
providers:
  civo: {clusterID: `+strings.Repeat("Az-9", 32)+`, region: r, apiKeyFile: token}
  clusterAPI: {cluster: default/prod}
  daemonSets: {cni: kube-system/cilium}
  external: {}
  hosts: {keyFile: key, knownHostsFile: known_hosts, units: [`+strings.Repeat("u", 192)+`.service]}
  karpenter: {}
  kilo: {}
  annotation: {preset: metal3, namespace: metal3}
  redfish:
    usernameFile: token
    passwordFile: token
    caFile: ca.crt
    bmcs:
    - {node: metal-1, url: "https://192.0.2.21:8443/", uuid: 4C4C4544-0042-3510-8054-B7C04F4D3332}
    - {node: metal-2, url: "HTTPS://bmc.example", fingerprint: `+strings.Repeat("ab:", 31)+`ab, serialNumber: SN-2}
  sidecars: [{name: sei}]
`)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	private, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	for name, text := range map[string][]byte{
		"key": pem.EncodeToMemory(private), "known_hosts": []byte(knownHosts),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), name), text, 0o600))
	}
	return file
}

// known is a line that known_hosts may have.
const known = "cp-1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG5lHL2Vo0zFRqGUPS3FJoVyF5zsjrHHTzkbSkRuCVLs\n"

// TestAcceptedConfigurationsMakeClients: each client takes what the configuration takes, up to the
// same limits.
func TestAcceptedConfigurationsMakeClients(t *testing.T) {
	file := everyClient(t, known)
	code, stdout, _ := call(t, "check", file)
	require.Equal(t, cli.ExitOK, code, stdout)
	cfg, _, err := config.Load(file, config.Options{})
	require.NoError(t, err)
	rescue, err := (&program{cfg: cfg, rest: &rest.Config{}, log: logr.Discard()}).newRescue()
	require.NoError(t, err)
	require.NotNil(t, rescue)
}

// TestCheckMakesTheClients: a file that is there, and that no client can use, is found before the
// start, unless files are skipped.
func TestCheckMakesTheClients(t *testing.T) {
	file := everyClient(t, "cp-1 what-is-this\n")
	code, stdout, _ := call(t, "check", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stdout, file+":1: document: drydock run cannot start with this configuration: configuring hosts: reading the known_hosts file ")
	require.NotContains(t, stdout, ": ok")
	code, stdout, _ = call(t, "check", "--skip-files", file)
	require.Equal(t, cli.ExitOK, code, stdout)
}

// TestAFaultyProviderEndsRun also where the control plane is repaired without an API server: it is
// never taken for one that does not answer.
func TestAFaultyProviderEndsRun(t *testing.T) {
	file := everyClient(t, known)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte("a:b"), 0o600))
	kubeconfig := write(t, "kubeconfig", "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: \"https://127.0.0.1:9\"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out, problems bytes.Buffer
	code := execute(ctx, []string{"run", "--config", file, "--kubeconfig", kubeconfig}, &out, &problems)
	require.NoError(t, ctx.Err(), "it goes on: %s", problems.String())
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, problems.String(), `configuring Redfish: the BMC of node "metal-1": reading the file with the BMC's user name `)
}

// TestNoCommandQuotesAKubeconfigsPassword: the parser of URLs quotes an address that it cannot
// read.
func TestNoCommandQuotesAKubeconfigsPassword(t *testing.T) {
	file := write(t, "drydock.yaml", strings.Replace(sound, "token}", "/nowhere/token}", 1))
	for server, says := range map[string]string{
		"https://u:hunter2%zz@host": "the API server's address is not a URL",
		"https://u:hunter2 x@host":  "the API server's address is not a URL",
		"https://u:hunter2@host":    "the API server's address has credentials in it",
	} {
		kubeconfig := write(t, "kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n", server))
		for _, args := range [][]string{
			{"check", "--skip-files", file, "--kubeconfig", kubeconfig},
			{"run", "--config", write(t, "drydock.yaml", strings.Replace(sound, "tokenFile: token", `listen: "127.0.0.1:0"`, 1)), "--kubeconfig", kubeconfig},
		} {
			code, stdout, stderr := call(t, args...)
			require.Equal(t, cli.ExitFailed, code, "%s%s", stdout, stderr)
			require.Contains(t, stderr, "reading --kubeconfig "+kubeconfig+": "+says, args[0])
			require.NotContains(t, stdout+stderr, "hunter2", args[0])
		}
	}
}

// TestAServersWarningSteersNoTerminal: others may have written it.
func TestAServersWarningSteersNoTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/nodes" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Warning", "299 - \"a policy says \u202esey\"")
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[]}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig := write(t, "kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n", server.URL))
	code, _, stderr := call(t, "check", write(t, "drydock.yaml", sound), "--kubeconfig", kubeconfig)
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, "Warning: a policy says \ufffdsey\n", stderr)
}

// TestCheckSkipsFiles: the chart's configuration is checked where its files are not, and the output
// says what was left out.
func TestCheckSkipsFiles(t *testing.T) {
	file := write(t, "drydock.yaml", strings.Replace(sound, "token}", "/nowhere/token}", 1))
	code, stdout, _ := call(t, "check", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stdout, `file "/nowhere/token" does not exist`)
	code, stdout, stderr := call(t, "check", "--skip-files", file, "--kubeconfig", filepath.Join(filepath.Dir(file), "gone"))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stdout, file+": ok\n"+file+": not checked, because of --skip-files: the files that the configuration names (tokens, keys, certificates), and whether drydock run can use them\n")
	require.Contains(t, stderr, "reading --kubeconfig ", "the cluster is asked then, too")
	code, _, _ = call(t, "check", "--skip-files", write(t, "drydock.yaml", sound+"mode: enforced\n"))
	require.Equal(t, cli.ExitFailed, code)
}
