package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
)

// TestCheckAsksEachMachineOfTheFenceAgents for its status, and for nothing else. Several agents,
// tables and a selector name the machines.
func TestCheckAsksEachMachineOfTheFenceAgents(t *testing.T) {
	const uuid = "4c4c4544-0042-3510-8054-b7c04f4d3332"
	var mu sync.Mutex
	var changes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, r.Method+" "+r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/nodes" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var nodes []string
		for name, more := range map[string]string{
			"on": "", "off": "", "hangs": "", "mute": "", "locked": "", "unlisted": "", "selected": `,"labels":{"hypervisor":"a"}`, "byuuid": "",
		} {
			id := ""
			if name == "byuuid" {
				id = `,"status":{"nodeInfo":{"systemUUID":"` + uuid + `"}}`
			}
			nodes = append(nodes, fmt.Sprintf(`{"metadata":{"name":%q%s}%s}`, name, more, id))
		}
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[`+strings.Join(nodes, ",")+`]}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig := write(t, "kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n", server.URL))
	asked := filepath.Join(t.TempDir(), "asked")
	agent := write(t, "fence_test", `#!/bin/sh
while read line; do
  case $line in
  plug=*) plug=${line#plug=} ;;
  action=*) action=${line#action=} ;;
  password=right) known=1 ;;
  esac
done
echo "$plug $action" >> "`+asked+`"
[ -n "$known" ] || { echo "Unable to connect/login to fencing device" >&2; exit 1; }
case $plug in
2) echo "Status: OFF"; exit 2 ;;
3) sleep 60 ;;
4) exit 1 ;;
*) echo "Status: ON" ;;
esac
`)
	require.NoError(t, os.Chmod(agent, 0o700))
	right, wrong := write(t, "right", "right\n"), write(t, "wrong", "wrong\n")
	first := write(t, "first.csv", "node,uuid,plug\non,,1\noff,,2\nhangs,,3\nmute,,4\nretired,,5\n,4C4C4544-0042-3510-8054-B7C04F4D3332,6\n,4c4c4544-0042-3510-8054-b7c04f4d9999,7\n")
	second := write(t, "second.csv", "node,plug\nlocked,1\n")
	check := func(providers string, more ...string) (code int, stdout, stderr string) {
		file := write(t, "drydock.yaml", sound+"providers: "+providers+"\n")
		code, stdout, stderr = call(t, append([]string{"check", file, "--kubeconfig", kubeconfig}, more...)...)
		return code, strings.ReplaceAll(stdout, file+": ", ""), stderr
	}
	agents := fmt.Sprintf("{agent: %[1]q, machinesFile: %[4]q, secretFiles: {password: %[2]q}}, {agent: %[1]q, machinesFile: %[5]q, options: {ip: 192.0.2.2}, secretFiles: {password: %[3]q}}, "+
		"{agent: %[1]q, nodeSelector: {matchLabels: {hypervisor: a}}, options: {plug: '{node}', ip: 192.0.2.3}, secretFiles: {password: %[2]q}}", agent, right, wrong, first, second)

	code, stdout, stderr := check("{fence: {timeout: 1s, agents: [" + agents + "]}}")
	require.Equal(t, cli.ExitOK, code, stderr)
	const unsaid = "the fence agent did not say whether the machine is on: "
	for _, line := range []string{
		"Node on: the fence agent says that the machine is on", "Node off: the fence agent says that the machine is off",
		"Node byuuid: the fence agent says that the machine is on", "Node selected: the fence agent says that the machine is on",
		"warning: Node hangs: " + unsaid + agent + " did not end within 1s",
		"warning: Node mute: " + unsaid + "the agent gave no usable answer (exit code 1)",
		"warning: Node locked: " + unsaid + "the device cannot be reached, or refuses the account: ",
		"warning: Node unlisted: " + unsaid + "no agent of providers.fence has this node",
		"warning: machinesFile " + first + ", machine 5 (node retired): the cluster has no such Node",
		"warning: machinesFile " + first + ", machine 7 (uuid 4c4c4544-0042-3510-8054-b7c04f4d9999): the cluster has no such Node",
	} {
		require.Equal(t, 1, strings.Count(stdout, line), "%s\n%s", line, stdout)
	}
	require.Equal(t, 2, strings.Count(stdout, "the cluster has no such Node"))
	require.NotContains(t, stdout+stderr, "right\n")
	actions, err := os.ReadFile(asked)
	require.NoError(t, err)
	runs := slices.Sorted(strings.Lines(string(actions)))
	require.Equal(t, []string{"1 status\n", "1 status\n", "2 status\n", "3 status\n", "4 status\n", "6 status\n", "selected status\n"}, runs)
	mu.Lock()
	require.Empty(t, changes)
	mu.Unlock()

	code, stdout, stderr = check("{fence: {agents: [{agent: /gone/fence_test, machinesFile: gone}]}}", "--skip-files")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "warning: the power state of the machines in providers.fence could not be read: configuring providers.fence.agents[0]: exec: \"/gone/fence_test\": stat /gone/fence_test: no such file or directory")
}
