package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/lab"
)

// asProgram in the environment makes the test binary the program itself.
const asProgram = "DRYDOCK_AGENT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	lab.Main(m, lab.Options{Components: lab.APIServerOnly})
}

// call runs the program in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = execute(t.Context(), args, &out, &problems)
	return code, out.String(), problems.String()
}

func TestUsageErrorsEndWithTwo(t *testing.T) {
	sound := []string{"run", "--node-name", "n1", "--namespace", "drydock", "--key-file", "key"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":   {[]string{"rnu"}, `unknown command "rnu" for "drydock-agent"`},
		"unknown flag":      {[]string{"run", "--fast"}, "unknown flag: --fast"},
		"argument too many": {append(sound, "now"), `unknown command "now" for "drydock-agent run"`},
		"no node":           {[]string{"run", "--namespace", "drydock", "--key-file", "key"}, "--node-name is missing: name the Node"},
		"no namespace":      {[]string{"run", "--node-name", "n1", "--key-file", "key"}, "--namespace is missing: name the namespace"},
		"no key file":       {[]string{"run", "--node-name", "n1", "--namespace", "drydock"}, "--key-file is missing: name the file with the key that all agents share; make one with: head -c 32 /dev/urandom | base64"},
		"no service":        {append(sound, "--service", ""), "--service is missing"},
		"no label":          {append(sound, "--topology-label", ""), "--topology-label is missing"},
		"a short payload":   {append(sound, "--payload", "9"), "--payload is 9; write 256 to 8952 bytes"},
		"a long payload":    {append(sound, "--payload", "65000"), "--payload is 65000; write 256 to 8952 bytes"},
		"a short interval":  {append(sound, "--interval", "1ms"), "--interval is 1ms; write 1s to 1m"},
		"no port":           {append(sound, "--listen", "9099"), `--listen "9099": write an address and a port`},
		"no metrics port":   {append(sound, "--metrics", ":http"), `--metrics ":http": write an address and a port`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, c.args...)
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "drydock-agent: "+c.want)
			require.Contains(t, stderr, "--help")
		})
	}
}

// TestNoErrorQuotesAKubeconfigsPassword: the parser of URLs quotes an address that it cannot read.
func TestNoErrorQuotesAKubeconfigsPassword(t *testing.T) {
	for _, server := range []string{"https://u:hunter2%zz@host", "https://u:hunter2 x@host"} {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n", server), 0o600))
		code, stdout, stderr := call(t, "run", "--node-name", "n1", "--namespace", "drydock", "--key-file", "/nowhere/key", "--kubeconfig", kubeconfig)
		require.Equal(t, cli.ExitFailed, code, stdout)
		require.Contains(t, stderr, "reading --kubeconfig "+kubeconfig+": the API server's address is not a URL")
		require.NotContains(t, stdout+stderr, "hunter2")
	}
}

func TestHelpEndsWithZero(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"run", "--help"}} {
		code, stdout, stderr := call(t, args...)
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "Usage:")
		require.Empty(t, stderr)
	}
}

func TestEnvironmentStandsForFlags(t *testing.T) {
	lookup := func(env map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	}
	value := func(env map[string]string, flag string) string {
		cmd := newRunCommand()
		require.NoError(t, cli.FlagsFromEnvironment(cmd, lookup(env), downward))
		return cmd.Flags().Lookup(flag).Value.String()
	}
	require.Equal(t, "n1", value(map[string]string{"NODE_NAME": "n1"}, "node-name"))
	require.Equal(t, "n2", value(map[string]string{"NODE_NAME": "n1", "DRYDOCK_NODE_NAME": "n2"}, "node-name"))
	require.Equal(t, "ns", value(map[string]string{"POD_NAMESPACE": "ns"}, "namespace"))
	require.Equal(t, "15s", value(map[string]string{"DRYDOCK_INTERVAL": "15s"}, "interval"))

	t.Setenv("DRYDOCK_PAYLOAD", "much")
	code, _, stderr := call(t, "run")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "drydock-agent: reading the environment variable DRYDOCK_PAYLOAD, ")
}

// In a cluster, Kubernetes itself sets variables like DRYDOCK_PORT for a Service named drydock.
func TestNoFlagIsNamedAsKubernetesNamesServices(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := cli.EnvironmentName(f.Name)
			for _, taken := range []string{"DRYDOCK_PORT", "DRYDOCK_SERVICE_", "DRYDOCK_AGENT_"} {
				require.False(t, strings.HasPrefix(name, taken), "--%s", f.Name)
			}
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRootCommand())
}

func TestVersion(t *testing.T) {
	code, stdout, _ := call(t, "version")
	require.Equal(t, cli.ExitOK, code)
	require.Regexp(t, `^drydock-agent version \S+, commit \S+, go go\S+\n$`, stdout)

	require.Equal(t, "drydock-agent version (devel), commit unknown, go unknown", thisBuild().Line(nil))
	require.Equal(t, "drydock-agent version v1.2.3, commit abc+dirty, go go1.26.8", thisBuild().Line(&debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}))
}
