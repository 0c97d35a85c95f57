package e2e

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// TestWhyFollowsASilence: `why` first names who silenced the node, then shows that the node is
// under repair, and then that nothing is to be done.
func TestWhyFollowsASilence(t *testing.T) {
	y := newYard(t)
	const node = "node-71"
	plugin, err := y.lab.PluginProgram(t.Context())
	require.NoError(t, err)
	comeBack := y.away(nil)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	asked := []string{"--alertmanager", y.lab.AlertmanagerURLs()[0], "--alertmanager", y.lab.AlertmanagerURLs()[1]}
	why := func(further ...string) (code int, out string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), plugin, append([]string{"--kubeconfig", y.lab.AdminKubeconfig(), "why", node, "--config", d.ConfigFile}, further...)...)
		said, _ := c.CombinedOutput()
		return c.ProcessState.ExitCode(), string(said)
	}

	var code int
	var out string
	require.Eventually(t, func() bool { code, out = why(asked...); return code == 0 }, lab.Patience, time.Second, "the ledger is there in a moment: %s", out)

	expire := y.silenceBoth("the disk is being swapped", "node="+node)
	y.fail(node)
	y.held(node, remediations.ReasonSilenced)
	for _, further := range [][]string{asked, nil} { // from Alertmanager itself, and from what Drydock wrote about it
		code, out = why(further...)
		require.Equal(t, 3, code, out)
		require.Contains(t, out, "Silenced holds it, until ")
		require.Contains(t, out, author+" (the disk is being swapped)")
	}

	expire()
	y.await(node, "under repair", func(n *corev1.Node) bool { return remediations.InFlight(n) != nil })
	code, out = why(asked...)
	require.Equal(t, 4, code, out)
	require.Contains(t, out, node+" is under repair: reboot:1")

	comeBack()
	y.recovers(node, 1)
	require.Eventually(t, func() bool { code, out = why(asked...); return code == 0 }, lab.Patience, time.Second, "%s", out)
	require.Contains(t, out, "Recovered")
}
