// Package backtest runs the commands of docs/operate/backtest.md exactly as the page has them, on
// the past of a small fleet.
package backtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/internal/backtest/history/historytest"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// printed are the commands of the page, in order.
func printed(t *testing.T) (out []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/backtest.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// types runs a command of the page in a folder, and returns what it prints.
func types(t *testing.T, dir, command string) string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-ec", command)
	shell.Dir = dir
	var errs bytes.Buffer
	shell.Stderr = &errs
	out, err := shell.Output()
	require.NoError(t, err, "%s: %s", command, errs.String())
	require.Empty(t, errs.String(), "no progress, where nobody looks at a terminal")
	return string(out)
}

func TestThePagesCommandsRunAsPrinted(t *testing.T) {
	all := printed(t)
	require.Len(t, all, 7)
	dir := t.TempDir()
	for i, program := range []string{"drydock", "drydock-backtest"} {
		require.Equal(t, "go build -o bin/"+program+" ./cmd/"+program, all[i])
		require.NoError(t, programs.Compile(t.Context(), filepath.Join(dir, "bin", program), "./cmd/"+program))
	}
	for name, text := range map[string]string{"config.yaml": Config, "other.yaml": strings.Replace(Config, "plan:", "for: 20m\n  plan:", 1)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	march, err := time.Parse(time.RFC3339, regexp.MustCompile(`--until (\S+)`).FindStringSubmatch(all[4])[1])
	require.NoError(t, err)
	require.NoError(t, os.Rename(lab.WriteTSDB(t, Outage(t, march).OpenMetrics()), filepath.Join(dir, "snapshot")))

	asks := all[2]
	require.Contains(t, asks, "http://localhost:9090")
	types(t, dir, strings.Replace(asks, "http://localhost:9090", lab.ServeTSDB(t, lab.WriteTSDB(t, Outage(t, time.Now().Truncate(30*time.Second)).OpenMetrics())), 1))
	html, err := os.ReadFile(filepath.Join(dir, "backtest.html"))
	require.NoError(t, err)
	require.Contains(t, string(html), "<title>Drydock backtest")
	require.Contains(t, string(html), "<dt>repairs, as it went</dt><dd>1</dd>")

	blocks := folders(t, filepath.Join(dir, "snapshot"))
	address := serves(t, dir, all[3])
	for i := range all {
		all[i] = strings.Replace(all[i], "http://localhost:9091", address, 1)
	}
	read := types(t, dir, all[4])
	require.Contains(t, read, "Drydock would have repaired 1 fault of nodes")
	require.Equal(t, read, types(t, dir, all[4]), "the same data gives the same bytes")
	require.Contains(t, read, "matches their alerts, so these rules were not evaluated")
	require.Subset(t, folders(t, filepath.Join(dir, "snapshot")), blocks, "no block is deleted or merged")

	inPart := strings.Replace(all[6], march.Format(time.RFC3339), march.Add(-3*time.Hour-30*time.Minute).Format(time.RFC3339), 1)
	require.NotEqual(t, all[6], inPart)
	types(t, dir, strings.Replace(inPart, "30d", "716h30m", 1))
	require.Equal(t, read, types(t, dir, all[6]), "a state that is carried over changes nothing")

	compared := types(t, dir, all[5])
	_, otherwise, _ := strings.Cut(compared, "What the second configuration would have done differently")
	require.Regexp(t, `n3 +NodeNotReady .*reboot:1 `, otherwise)
}

// folders returns the names of the entries of a folder.
func folders(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, one := range all {
		out = append(out, one.Name())
	}
	return out
}

// serves runs the page's command of Prometheus in a folder, at a free address, and returns the
// address.
func serves(t *testing.T, dir, command string) string {
	t.Helper()
	built, err := programs.Build(t.Context(), t.Output(), "prometheus")
	require.NoError(t, err)
	port, err := lab.FreePort()
	require.NoError(t, err)
	address := fmt.Sprintf("localhost:%d", port)
	words := strings.Fields(strings.Replace(command, "localhost:9091", address, 1))
	require.Equal(t, "prometheus", words[0])
	process, err := lab.StartProcess(t.Context(), lab.Spec{
		Name: "prometheus", Path: built["prometheus"], Log: filepath.Join(dir, "prometheus.log"), ReadyURL: "http://" + address + "/-/ready", Dir: dir, Args: words[1:],
	})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return "http://" + address
}

// TestThePageHasTheProgramsFlags: the page and the program have the same flags.
func TestThePageHasTheProgramsFlags(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, programs.Compile(t.Context(), filepath.Join(dir, "backtest"), "./cmd/drydock-backtest"))
	help, err := exec.CommandContext(t.Context(), filepath.Join(dir, "backtest"), "--help").Output()
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/operate/backtest.md")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, f := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		if known[f[1]] = true; f[1] != "--help" && f[1] != "--version" && f[1] != "--output" {
			require.Contains(t, string(page), f[1])
		}
	}
	for _, f := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(regexp.MustCompile("(?m)^prometheus .*$").ReplaceAllString(string(page), ""), -1) {
		require.True(t, known[f], f)
	}
}
