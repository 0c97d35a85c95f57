package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
)

// An alert ends for some time although the fault stays, and its rule begins to count its "for"
// again. In each of these ways, the proof of the step also comes, and the node is Ready. But the
// repair may end only when the fault is gone.
func TestAFaultThatStaysIsNeverACure(t *testing.T) {
	// Each way has nodes of its own, because limits.repairsPerNode allows only three repairs on one
	// machine.
	for name, way := range map[string]struct {
		node, control string
		away          time.Duration // how long the machine is down
		wait          string        // the wait for the proof of one reboot
		attempts      int
		disturb       string // the program that dies together with the first reboot
	}{
		"the reboot makes the condition Unknown":   {node: "node-50", control: "node-51", away: lab.DefaultNodeGrace + 2*time.Second, wait: (lab.DefaultNodeGrace + 7*time.Second).String(), attempts: 2},
		"kube-state-metrics is gone for a while":   {node: "node-52", control: "node-53", away: time.Second, wait: "14s", attempts: 1, disturb: "kube-state-metrics"},
		"Prometheus is restarted after the reboot": {node: "node-54", control: "node-55", away: time.Second, wait: "25s", attempts: 1, disturb: "prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			y, node, control := newYard(t), way.node, way.control
			require.NoError(t, y.lab.LoadRules(t.Context(), "disk-full", []byte(diskFull)))
			y.machines(lab.CivoOptions{RebootTime: way.away, Cures: func(in civosim.Instance, _ civosim.Op) bool { return in.Hostname == control }})
			y.run(lab.DrydockOptions{Config: several(map[string]any{"policies": []any{for1(control, diskPressure(nil)), diskPressure(map[string]any{
				"plan": []any{map[string]any{"step": "reboot", "wait": way.wait, "attempts": way.attempts}},
			})}})})
			if way.disturb != "" {
				y.diesWithTheFirstReboot(way.disturb)
			}

			y.fill(node)
			y.fill(control)
			if way.disturb != "" {
				<-y.lab.Process(way.disturb).Done()
				y.alertmanagers(node, "gone", isState(""))
				y.revive(way.disturb)
			}

			e := y.ended(node)
			require.Equal(t, remediations.OutcomeExhausted, e.Outcome, e.Why)
			require.Equal(t, way.attempts, y.reboots(node), "as often as the plan says, and no more")
			require.Len(t, e.Steps, way.attempts)
			require.True(t, y.node(node).Spec.Unschedulable, "it is left to a person")
			// The control: the same alert with the same gap, and a reboot that cures.
			y.recovers(control, 1)
		})
	}
}

// diskFull is a rule as a user would write it. It has no keep_firing_for, and does not fire while
// its series is missing. Its `for` is longer than the policy's proofFor.
const diskFull = `groups:
- name: disk-full
  rules:
  - alert: DiskFull
    expr: kube_node_status_condition{condition="DiskPressure",status="true"} == 1
    for: 5s
    labels: {remediation: disk-full}
`

// diskPressure is the policy for a fault that the condition Ready does not show.
func diskPressure(over map[string]any) map[string]any {
	p := policy(map[string]any{
		"name": "disk-full", "match": []string{`remediation="disk-full"`},
		"witness": []any{map[string]any{"condition": map[string]any{"type": "DiskPressure", "status": "True"}}},
	})
	for k, v := range over {
		p[k] = v
	}
	return p
}

// fill makes the node's kubelet report that its disk is full.
func (y *yard) fill(node string) {
	y.t.Helper()
	require.NoError(y.t, y.lab.SetCondition(y.t.Context(), node, corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	y.t.Cleanup(func() { _ = y.lab.Heal(context.WithoutCancel(y.t.Context()), node, "") })
}

// diesWithTheFirstReboot kills one of the lab's programs when the first reboot is under way.
func (y *yard) diesWithTheFirstReboot(program string) {
	y.t.Helper()
	var once sync.Once
	y.civo.OnReboot(func() { once.Do(y.lab.Process(program).Kill) })
	y.t.Cleanup(func() { y.revive(program) })
}

// revive starts one of the lab's programs again if it has ended.
func (y *yard) revive(program string) {
	y.t.Helper()
	p := y.lab.Process(program)
	select {
	case <-p.Done():
		require.NoError(y.t, p.Start(context.WithoutCancel(y.t.Context())))
	default:
	}
}
