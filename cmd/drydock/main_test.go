package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

// call runs the program in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = execute(t.Context(), args, &out, &problems)
	return code, out.String(), problems.String()
}

const sound = `apiVersion: drydock.dev/v1alpha1
kind: Config
receiver: {tokenFile: token}
alertmanager: {urls: ["http://alertmanager:9093"]}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte("secret"), 0o600))
	return file
}

func TestUsageErrorsEndWithTwo(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":    {[]string{"chekc"}, `unknown command "chekc" for "drydock"`},
		"unknown flag":       {[]string{"check", "--fast", "f"}, "unknown flag: --fast"},
		"root flag":          {[]string{"--fast"}, "unknown flag: --fast"},
		"argument missing":   {[]string{"check"}, "accepts 1 arg(s), received 0"},
		"argument too many":  {[]string{"version", "now"}, `unknown command "now" for "drydock version"`},
		"flag without value": {[]string{"policies", "--config"}, "flag needs an argument: --config"},
		"wrong value":        {[]string{"policies", "-o", "json"}, `--output is "json"; write table or yaml`},
		"no such rule":       {[]string{"rules", "NodeOnFire"}, `there is no rule file "NodeOnFire"; the rule files are`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, c.args...)
			require.Equal(t, cli.ExitUsage, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "drydock: "+c.want)
			require.Contains(t, stderr, "--help")
		})
	}
}

func TestHelpEndsWithZero(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"check", "--help"}} {
		code, stdout, stderr := call(t, args...)
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "Usage:")
		require.Empty(t, stderr)
	}
}

func TestEnvironmentStandsForFlags(t *testing.T) {
	file := write(t, "drydock.yaml", sound+"mode: enforce\n")
	t.Setenv("DRYDOCK_CONFIG", file)
	t.Setenv("DRYDOCK_OUTPUT", "yaml")
	code, stdout, _ := call(t, "policies")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, stdout, "mode: enforce")

	code, stdout, _ = call(t, "policies", "-o", "table")
	require.Equal(t, cli.ExitOK, code)
	require.True(t, strings.HasPrefix(stdout, "NAME "), "the flag wins over the environment")
}

func TestEnvironmentIsCheckedAsFlagsAre(t *testing.T) {
	t.Setenv("DRYDOCK_OUTPUT", "json")
	code, _, stderr := call(t, "policies")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, `drydock: --output is "json"; write table or yaml`)
}

// In a cluster, Kubernetes itself sets variables like DRYDOCK_PORT for a Service named drydock.
func TestNoFlagIsNamedAsKubernetesNamesServices(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := cli.EnvironmentName(f.Name)
			require.False(t, strings.HasPrefix(name, "DRYDOCK_PORT") || strings.HasPrefix(name, "DRYDOCK_SERVICE_"), "--%s", f.Name)
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRootCommand())
}
