package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// Drydock is stopped while a call is under way. It waits for the answer, records it, and ends well.
// The next Drydock proves the cure.
func TestStoppedDuringTheCall(t *testing.T) {
	y := newYard(t)
	comeBack := y.away(nil)
	d := y.run(lab.DrydockOptions{Config: several(config(policy(nil)))})
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	// Drydock waits only five seconds. If a busy machine took longer than that, nothing was
	// promised, and the test tries another node.
	const promised, most = 5 * time.Second, 5
	var node string
	for i, took := 0, promised; took >= promised; i++ {
		require.Less(t, i, most, "each stop took longer than %s", promised)
		node = fmt.Sprintf("node-%d", 40+i)
		id := strings.TrimPrefix(y.node(node).Spec.ProviderID, "civo://")
		y.civo.InjectNext(civosim.HardReboots, 1, civosim.Slow(2*time.Second))
		y.fail(node)
		_, err := y.civo.AwaitCall(ctx, func(c civosim.Call) bool {
			return c.Op == civosim.HardReboots && c.Done != "" && strings.Contains(c.Path, id)
		})
		require.NoError(t, err)
		began := time.Now()
		stopped := d.Stop(ctx)
		if took = time.Since(began); took < promised {
			require.NoError(t, stopped, "it ends by itself, with status 0")
			r := remediations.ReadJournal(y.node(node)).Record
			require.NotNil(t, r)
			require.Equal(t, remediations.PhaseVerifying, r.Phase)
			require.Equal(t, remediations.CallAccepted, r.Intent.Outcome)
		}
		require.NoError(t, y.lab.Restart(t.Context(), d))
	}

	comeBack()
	require.Equal(t, remediations.OutcomeRecovered, y.ended(node).Outcome)
	require.Equal(t, 1, y.reboots(node))
}

// These are the metrics of a whole repair, as rules and dashboards read them.
func TestTheMetricsOfARepair(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.fail("node-41")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-41").Outcome)
	lines := []string{
		`drydock_alerts_received_total{result="accepted"}`,
		`drydock_alertmanager_up{url="`,
		`drydock_repairs_in_progress{phase="Verifying",policy="node-not-ready"} 0`,
		`drydock_repairs_total{outcome="Recovered",policy="node-not-ready"} 1`,
		`drydock_repairs_total{outcome="Exhausted",policy="node-not-ready"} 0`,
		`drydock_repair_duration_seconds_count{outcome="Recovered",policy="node-not-ready"} 1`,
		`drydock_steps_total{outcome="accepted",step="reboot"} 1`,
		`drydock_holds{policy="node-not-ready",reason="AtLimit"} 0`,
		`drydock_breaker_state{scope="cluster",state="closed"} 1`,
		`drydock_blind{cause="alertmanager"} 0`,
		`drydock_blind{cause="leases"} 0`,
		`drydock_leader 1`,
		`drydock_build_info{version="`,
	}
	var metrics string
	missing := func() (out []string) {
		metrics = y.metrics(d)
		for _, line := range lines {
			if !strings.Contains(metrics, line) {
				out = append(out, line)
			}
		}
		return out
	}
	// The gauges are set at the end of the pass that wrote the Node.
	require.Eventually(t, func() bool { return len(missing()) == 0 }, lab.Patience, 50*time.Millisecond, "missing: %q", missing())
	require.NotContains(t, metrics, "node-41", "no series names a node, so none outlives one")
	y.noSecret()
}
