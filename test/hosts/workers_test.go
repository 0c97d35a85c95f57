package hosts

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/remediations"
)

// attempts returns what a host's journal must show about a repair with these attempts.
func attempts(id string, names ...string) []string {
	out := []string{}
	for _, name := range names {
		out = append(out, hosts.ByDrydock(id+"-"+name))
	}
	return out
}

// The whole chain: a kubelet ends or hangs, kube-controller-manager finds its node lost, and
// Prometheus raises the alert. Drydock restarts the unit over SSH, and the node's own lease proves
// the cure.
func TestAWorkersKubeletIsRestartedAndTheNodeRecovers(t *testing.T) {
	for name, fault := range map[string]func(*hosts.Host, context.Context) error{"stopped": (*hosts.Host).Stop, "hanging": (*hosts.Host).Hang} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.run(y.config(nodePolicy(wait)))
			before := y.version()
			require.NoError(t, fault(y.hosts.Host("worker-1"), t.Context()))
			y.lost("worker-1", before)

			e := y.ended("worker-1")

			require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
			require.Equal(t, []string{"restart-kubelet:1"}, e.Steps.Texts())
			require.Contains(t, e.Evidence, " kubelet[", "the unit's last words before the restart")
			require.Equal(t, attempts(e.ID, "0-1"), y.restarts("worker-1"), "the host's journal shows what the record claims")
			y.ready("worker-1", corev1.ConditionTrue)
			require.Empty(t, y.restarts("worker-2"))
			require.False(t, y.node("worker-1").Spec.Unschedulable)
		})
	}
}

// A kubelet that dies again and again uses up its attempts, and then the next step follows.
func TestAKubeletThatDiesAgainIsLeftToTheNextStep(t *testing.T) {
	y := newYard(t)
	y.run(y.config(nodePolicy(hold+30*time.Second, reboot)))
	require.NoError(t, y.hosts.Host("worker-1").DieAgainAfterEachRestart(t.Context()))

	e := y.ended("worker-1")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"restart-kubelet:1", "restart-kubelet:2", "reboot:1"}, e.Steps.Texts())
	require.Equal(t, attempts(e.ID, "0-1", "0-2"), y.restarts("worker-1"))
}

// An unreachable host costs no attempt. The next step repairs its node, and a message says why.
func TestAHostWithoutSSHIsPassedOver(t *testing.T) {
	for name, fault := range map[string]func(*hosts.Host, context.Context) error{"dead": (*hosts.Host).SSHDead, "hanging": (*hosts.Host).SSHHangs} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.run(y.config(nodePolicy(wait, reboot)))
			require.NoError(t, fault(y.hosts.Host("worker-1"), t.Context()))
			require.NoError(t, y.hosts.Host("worker-1").Stop(t.Context()))

			e := y.ended("worker-1")

			require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
			require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
			require.Empty(t, y.restarts("worker-1"))
			y.awaitEvent("worker-1", "restart-kubelet")
		})
	}
}

// A machine that does not prove to be the host gets no command, and a message shows its key.
func TestAHostWithAnotherKeyIsRefusedAndReported(t *testing.T) {
	y := newYard(t)
	y.run(y.config(nodePolicy(wait, reboot)))
	require.NoError(t, y.hosts.Host("worker-2").WrongHostKey(t.Context()))
	require.NoError(t, y.hosts.Host("worker-2").Stop(t.Context()))

	e := y.ended("worker-2")

	require.Equal(t, []string{"reboot:1"}, e.Steps.Texts())
	require.Empty(t, y.restarts("worker-2"))
	y.awaitEvent("worker-2", "SHA256:")
}

// Drydock dies when its intent is on the Node and before the call: that attempt is never made, the
// next one is.
func TestKilledBetweenTheIntentAndTheRestart(t *testing.T) {
	y := newYard(t)
	proxy, err := y.lab.NewProxy()
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	p := nodePolicy(wait)
	p["plan"] = []any{ // it is unknown whether the first attempt was made, so its time must pass
		map[string]any{"step": "restart-kubelet", "wait": soon.String(), "attempts": 1}, map[string]any{"step": "restart-kubelet", "wait": wait.String(), "attempts": 1},
	}
	d := y.runAt(proxy, y.config(p))
	proxy.After(killOn(d, "worker-1", remediations.PhaseActing)) //nolint:bodyclose // the proxy closes it
	require.NoError(t, y.hosts.Host("worker-1").Stop(t.Context()))
	lab.AwaitEnd(t, d.Process)
	proxy.After(nil)
	require.Empty(t, y.restarts("worker-1"), "the call was not made")
	require.NoError(t, y.lab.Restart(t.Context(), d))

	e := y.ended("worker-1")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, []string{"restart-kubelet:1", "restart-kubelet:1"}, e.Steps.Texts())
	require.Equal(t, attempts(e.ID, "1-1"), y.restarts("worker-1"))
}

// Drydock dies when the host has done the restart, and before that is on record. The unit was
// restarted once, and the next Drydock finds that out.
func TestKilledAfterTheRestart(t *testing.T) {
	y := newYard(t)
	d := y.run(y.config(nodePolicy(2 * time.Minute))) // the whole time passes, because the call's answer is unknown
	require.NoError(t, y.hosts.Host("worker-2").Stop(t.Context()))
	y.attempted("worker-2")
	d.Kill()
	require.NoError(t, y.lab.Restart(t.Context(), d))

	e := y.ended("worker-2")

	require.Contains(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeSelfRecovered}, e.Outcome, e.Why)
	require.Len(t, y.restarts("worker-2"), len(e.Steps), "the host's journal shows what the record claims: %v", e.Steps)
	require.Len(t, y.restarts("worker-2"), 1, "restarted once")
}

// Two replicas see the same fault, and only the leader restarts the unit.
func TestASecondReplicaRestartsNothing(t *testing.T) {
	y := newYard(t)
	y.run(y.config(nodePolicy(wait)))
	second := y.config(nodePolicy(wait))
	second["stateDir"] = t.TempDir()
	d, err := y.lab.StartDrydock(t.Context(), shared.token, lab.DrydockOptions{Name: "drydock-2", Config: second})
	require.NoError(t, err)
	t.Cleanup(d.Kill)
	require.NoError(t, y.hosts.Host("worker-1").Stop(t.Context()))
	e := y.ended("worker-1")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, attempts(e.ID, "0-1"), y.restarts("worker-1"))
}
