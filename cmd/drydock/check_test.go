package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

func TestCheckSaysOkAndWarnings(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"webhook: {exempt: {groups: [\"system:authenticated\"]}}\n")
	code, stdout, stderr := call(t, "check", file)
	require.Equal(t, cli.ExitOK, code)
	require.Empty(t, stderr)
	require.Contains(t, stdout, file+": ok\n"+file+":5: warning: webhook.exempt.groups[0]: ")
	require.Contains(t, stdout, "warning: policies: replace will be skipped in shipped policies: no provider for it is configured; add providers.civo, providers.clusterAPI or providers.karpenter (ProviderAbsent)\n")
	require.Contains(t, stdout, "warning: policies: reboot will be skipped in shipped policies: no provider for it is configured; add providers.civo, providers.hosts.reboot, providers.redfish or providers.metal3 (ProviderAbsent)\n")
	require.Contains(t, stdout, "can do nothing, none of their steps can be carried out: cilium-agent-not-ready, ")
	require.Less(t, strings.Count(stdout, "\n"), 10, "what is shipped does not hide what the person wrote")
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

// TestCheckSaysWhoServesWhat: which provider carries out which steps, and for which Nodes.
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
	require.Contains(t, stdout, file+": ok\n"+file+": providers.redfish carries out reboot for the 1 Nodes it names\n")
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
