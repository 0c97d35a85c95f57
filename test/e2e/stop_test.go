package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// Drydock is told to stop while a call is under way: it waits for the answer, puts it on record, and ends well. The
// next one proves the cure.
func TestStoppedDuringTheCall(t *testing.T) {
	y := newYard(t)
	d := y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.civo.InjectNext(civosim.HardReboots, 1, civosim.Slow(2*time.Second))
	y.fail("node-40")
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	_, err := y.civo.AwaitCall(ctx, func(c civosim.Call) bool { return c.Op == civosim.HardReboots && c.Done != "" })
	require.NoError(t, err)
	require.NoError(t, d.Stop(ctx), "it ends by itself, with status 0")
	r := remediations.ReadJournal(y.node("node-40")).Record
	require.NotNil(t, r)
	require.Equal(t, remediations.PhaseVerifying, r.Phase)
	require.Equal(t, remediations.CallAccepted, r.Intent.Outcome)

	require.NoError(t, y.lab.Restart(t.Context(), d))
	require.Equal(t, remediations.OutcomeRecovered, y.ended("node-40").Outcome)
	require.Equal(t, 1, y.reboots("node-40"))
}

// The figures of a whole repair, as rules and dashboards read them.
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
	// The gauges follow at the end of the pass that wrote the Node.
	require.Eventually(t, func() bool { return len(missing()) == 0 }, lab.Patience, 50*time.Millisecond, "missing: %q", missing())
	require.NotContains(t, metrics, "node-41", "no series names a node, so none outlives one")
	y.noSecret()
}
