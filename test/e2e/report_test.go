package e2e

import (
	"encoding/json"
	"os/exec"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/remediations"
)

// reported compares what `kubectl drydock report -o json` shows about the node with the node's one
// repair that has ended.
func (y *yard) reported(node string, e remediations.Entry) {
	y.t.Helper()
	plugin, err := y.lab.PluginProgram(y.t.Context())
	require.NoError(y.t, err)
	out, err := exec.CommandContext(y.t.Context(), plugin, "--kubeconfig", y.lab.AdminKubeconfig(), "report", node, "--since", "1h", "-o", "json").Output()
	require.NoError(y.t, err)
	var r report.Report
	require.NoError(y.t, json.Unmarshal(out, &r))
	require.Equal(y.t, 1, r.Total.Repairs)
	require.Equal(y.t, map[string]int{string(e.Outcome): 1}, r.Total.Outcomes)
	require.Equal(y.t, map[string]int{"reboot": 1}, r.Total.Steps)
	require.Equal(y.t, int64(e.Ended.Sub(e.Began)/time.Second), *r.Total.MedianSeconds)
	require.Len(y.t, r.Repairs, 1)
	require.Equal(y.t, e.ID, r.Repairs[0].ID)
	require.Equal(y.t, node, r.Repairs[0].Node)
}
