package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

// TestCheckAsksFenceAgents for the status of each machine, and for nothing else.
func TestCheckAsksFenceAgents(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/nodes" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"w1"}},{"metadata":{"name":"w2"}},{"metadata":{"name":"w3"}},{"metadata":{"name":"w4"}}]}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig := write(t, "kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n", server.URL))
	asked := filepath.Join(t.TempDir(), "asked")
	agent := write(t, "fence_test", `#!/bin/sh
while read line; do
  case $line in
  plug=*) plug=${line#plug=} ;;
  action=*) echo "$line" >> "`+asked+`" ;;
  esac
done
case $plug in
1) echo "Status: ON" ;;
2) echo "Status: OFF"; exit 2 ;;
*) echo "Unable to connect/login to fencing device" >&2; exit 1 ;;
esac
`)
	require.NoError(t, os.Chmod(agent, 0o700))
	table := write(t, "machines.csv", "node,plug\nw1,1\nw2,2\nw3,3\n")
	file := write(t, "drydock.yaml", sound+"providers: {fence: {agents: [{agent: \""+agent+"\", machinesFile: \""+table+"\"}]}}\n")
	code, stdout, stderr := call(t, "check", file, "--kubeconfig", kubeconfig)
	require.Equal(t, cli.ExitOK, code, stderr)
	for _, line := range []string{
		"Node w1: the fence agent says that the machine is on", "Node w2: the fence agent says that the machine is off",
		"warning: Node w3: the fence agent did not say whether the machine is on: the device cannot be reached, or refuses the account: ",
		"warning: Node w4: the fence agent did not say whether the machine is on: no agent of providers.fence names this node",
	} {
		require.Contains(t, stdout, file+": "+line)
	}
	actions, err := os.ReadFile(asked)
	require.NoError(t, err)
	require.Equal(t, "action=status\naction=status\naction=status\n", string(actions))

	code, stdout, _ = call(t, "check", "--skip-files", write(t, "drydock.yaml", sound+"providers: {fence: {agents: [{agent: /gone/fence_test, machinesFile: gone}]}}\n"), "--kubeconfig", kubeconfig)
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, stdout, "warning: the machines of providers.fence were not asked: configuring providers.fence.agents[0]: stat /gone/fence_test: no such file or directory")
}
