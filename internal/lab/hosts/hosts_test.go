package hosts_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
)

// tick is the time between two checks of a condition.
const tick = 50 * time.Millisecond

// shared are the hosts that all tests use, and the lab on them.
var shared struct {
	hosts *hosts.Hosts
	lab   *lab.Lab
}

func TestMain(m *testing.M) {
	m.Run() // TestMain passes the result on itself
	if shared.lab != nil {
		shared.lab.Stop()
	}
	if shared.hosts != nil {
		shared.hosts.Close()
	}
}

// start returns the hosts for a test, without faults.
func start(t *testing.T) (*hosts.Hosts, *lab.Lab, context.Context) {
	t.Helper()
	hosts.Need(t)
	if shared.hosts == nil {
		began := time.Now()
		var err error
		shared.hosts, err = hosts.New(t.Context(), hosts.Options{})
		require.NoError(t, err)
		t.Logf("the hosts answer by SSH after %s", time.Since(began))
		shared.lab, err = lab.Start(context.WithoutCancel(t.Context()), lab.Options{Components: lab.ControlPlane, APIServers: shared.hosts.StartCluster})
		require.NoError(t, err)
		t.Logf("the cluster is ready after %s", time.Since(began))
	}
	require.NotNil(t, shared.lab, "the first test could not start it")
	t.Cleanup(func() {
		if t.Failed() {
			shared.hosts.Keep()
			shared.lab.Keep()
			t.Logf("logs: %s, %s", shared.hosts.LogDir(), shared.lab.LogDir())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience) // the time limit of the test, without the lab's start
	t.Cleanup(cancel)
	require.NoError(t, shared.hosts.Heal(ctx))
	return shared.hosts, shared.lab, ctx
}

// becomes waits until a node's Ready condition is as wanted.
func becomes(t *testing.T, l *lab.Lab, node string, want corev1.ConditionStatus) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := l.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == want
			}
		}
		return false
	}, lab.Patience, 100*time.Millisecond, "node %s must become Ready=%s", node, want)
}

// by returns who has restarted the kubelet since then.
func by(t *testing.T, h *hosts.Host, since time.Time) (out []string) {
	t.Helper()
	restarts, err := h.Restarts(t.Context(), hosts.KubeletUnit)
	require.NoError(t, err)
	for _, r := range restarts {
		if r.At.After(since) {
			out = append(out, r.By)
		}
	}
	return out
}

// A host that reboots comes back with a boot ID of its own, which its kubelet reports. A host that
// powers off stays off.
func TestAHostThatRebootsComesBackInAnotherBoot(t *testing.T) {
	h, l, ctx := start(t)
	host := h.Host("worker-1")
	boots, err := host.Boots(ctx)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, host.Reboot(ctx))
		id, err := host.BootID(ctx)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			n, err := l.Client().CoreV1().Nodes().Get(ctx, host.Name, metav1.GetOptions{})
			return err == nil && n.Status.NodeInfo.BootID == id
		}, lab.Patience, tick, "the node reports the new boot ID")
	}
	now, err := host.Boots(ctx)
	require.NoError(t, err)
	require.Len(t, now, len(boots)+2, "the host's journal shows each boot")
	require.Equal(t, boots, now[:len(boots)])
	_, _ = host.Run(ctx, "systemctl", "poweroff") // which may end the command as well
	require.Eventually(t, func() bool {
		_, err := host.Run(ctx, "true")
		return err != nil
	}, lab.Patience, tick)
	require.NoError(t, host.Heal(ctx), "which turns it on")
	becomes(t, l, host.Name, corev1.ConditionTrue)
}

// A host that is shutting down counts as broken, like a host that is off.
func TestAHostThatGoesDownIsHealedToo(t *testing.T) {
	h, l, ctx := start(t)
	host := h.Host("worker-2")
	before, err := host.BootID(ctx)
	require.NoError(t, err)
	_, err = host.Run(ctx, "systemctl", "poweroff", "--no-block")
	require.NoError(t, err)
	require.NoError(t, host.Heal(ctx))
	after, err := host.BootID(ctx)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.Eventually(t, func() bool {
		n, err := l.Client().CoreV1().Nodes().Get(ctx, host.Name, metav1.GetOptions{})
		return err == nil && n.Status.NodeInfo.BootID == after
	}, lab.Patience, tick, "the node reports the new boot ID")
	becomes(t, l, host.Name, corev1.ConditionTrue)
}

func TestAHostIsAMachineOfItsOwn(t *testing.T) {
	h, l, ctx := start(t)
	names := map[string]bool{}
	for _, host := range h.All() {
		out, err := host.Run(ctx, "cat", "/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname")
		require.NoError(t, err)
		require.Contains(t, out, host.Name)
		names[out] = true
		require.Eventually(t, func() bool { // a host that another test has just switched on may have no D-Bus yet
			state, err := host.Run(ctx, "systemctl", "is-system-running", "--wait")
			return err == nil && state == "running\n"
		}, lab.Patience, tick, "%s is running", host.Name)
		var n *corev1.Node
		require.Eventually(t, func() bool { // a kubelet that has just started has not reported its boot ID yet
			n, err = l.Client().CoreV1().Nodes().Get(ctx, host.Name, metav1.GetOptions{})
			return err == nil && strings.Contains(out, n.Status.NodeInfo.BootID)
		}, lab.Patience, tick, "Node %s has its host's boot ID", host.Name)
		_, control := n.Labels["node-role.kubernetes.io/control-plane"]
		require.Equal(t, host.ControlPlane, control)
		require.Equal(t, host.Address(), n.Status.Addresses[0].Address)
	}
	require.Len(t, names, 5)
	memory, err := os.ReadFile("/proc/meminfo")
	require.NoError(t, err)
	t.Logf("memory of the machine:\n%.90s", memory)
}

// capabilities returns the effective capabilities from the text of a file /proc/PID/status.
func capabilities(t *testing.T, status string) (bits uint64) {
	t.Helper()
	_, after, found := strings.Cut(status, "CapEff:")
	require.True(t, found, status)
	_, err := fmt.Sscanf(after, "%x", &bits)
	require.NoError(t, err)
	return bits
}

// TestACommandOnAHostCannotChangeTheMachine: such a command could otherwise set the clock of all
// hosts and of the machine. The test only reads what the command may do.
func TestACommandOnAHostCannotChangeTheMachine(t *testing.T) {
	h, _, ctx := start(t)
	own, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	on, err := h.Host("worker-1").Run(ctx, "cat", "/proc/self/status")
	require.NoError(t, err)
	for name, bit := range map[string]int{
		"clock": unix.CAP_SYS_TIME, "modules": unix.CAP_SYS_MODULE, "ports": unix.CAP_SYS_RAWIO, "log": unix.CAP_SYSLOG, "wake": unix.CAP_WAKE_ALARM,
	} {
		require.NotZero(t, capabilities(t, string(own))&(1<<bit), "%s: without it here, nothing shows that a host takes it away", name)
		require.Zero(t, capabilities(t, on)&(1<<bit), name)
	}
}

func TestAStoppedOrHangingKubeletLosesItsNodeUntilItIsRestarted(t *testing.T) {
	h, l, ctx := start(t)
	for name, fault := range map[string]func(*hosts.Host, context.Context) error{"stop": (*hosts.Host).Stop, "hang": (*hosts.Host).Hang} {
		t.Run(name, func(t *testing.T) {
			worker := h.Host("worker-1")
			began := time.Now()
			becomes(t, l, worker.Name, corev1.ConditionTrue)
			require.NoError(t, fault(worker, ctx))
			becomes(t, l, worker.Name, corev1.ConditionUnknown)
			require.Empty(t, by(t, worker, began), "nobody restarts it")
			_, err := worker.Run(ctx, "systemctl", "restart", hosts.KubeletUnit)
			require.NoError(t, err)
			becomes(t, l, worker.Name, corev1.ConditionTrue)
			require.Equal(t, []string{hosts.ByUnknown}, by(t, worker, began))
		})
	}
}

func TestAnAPIServerStopsWithItsKubeletAndTheOthersContinue(t *testing.T) {
	h, l, ctx := start(t)
	for name, fault := range map[string]func(*hosts.Host, context.Context) error{"stop": (*hosts.Host).Stop, "hang": (*hosts.Host).Hang} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, fault(h.Host("cp-2"), ctx))
			require.Error(t, h.Host("cp-2").Ready(ctx))
			// This host may have had the leader of etcd. Then the others first elect another
			// leader.
			require.NoError(t, h.Host("cp-1").AwaitAPI(ctx))
			require.NoError(t, h.Host("cp-3").AwaitAPI(ctx))
			becomes(t, l, "cp-2", corev1.ConditionUnknown)
			require.NoError(t, h.Heal(ctx))
			becomes(t, l, "cp-2", corev1.ConditionTrue)
		})
	}
}

func TestWithoutAMajorityOfEtcdNoAPIServerIsReady(t *testing.T) {
	h, l, ctx := start(t)
	require.NoError(t, h.Host("cp-1").Stop(ctx))
	require.NoError(t, h.Host("cp-2").Stop(ctx))
	require.Eventually(t, func() bool { return h.Host("cp-3").Ready(ctx) != nil }, lab.Patience, 100*time.Millisecond)
	_, err := h.Host("cp-1").Run(ctx, "systemctl", "restart", hosts.KubeletUnit)
	require.NoError(t, err)
	require.NoError(t, h.Host("cp-1").AwaitAPI(ctx))
	require.NoError(t, h.Host("cp-3").AwaitAPI(ctx))
	require.Error(t, h.Host("cp-2").Ready(ctx))
	_, err = l.Client().CoreV1().Nodes().Get(ctx, "worker-1", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestAKubeletThatDiesIsRestartedBySystemdAgainAndAgain(t *testing.T) {
	h, l, ctx := start(t)
	worker := h.Host("worker-2")
	began := time.Now()
	require.NoError(t, worker.DieAgainAfterEachRestart(ctx))
	becomes(t, l, worker.Name, corev1.ConditionUnknown)
	require.Eventually(t, func() bool { return len(by(t, worker, began)) >= 3 }, lab.Patience, 100*time.Millisecond)
	require.NotContains(t, by(t, worker, began), hosts.ByUnknown)
	require.NoError(t, worker.LiveAgain())
	becomes(t, l, worker.Name, corev1.ConditionTrue)
}

func TestWhoRestartedAUnitStandsInTheJournalOfTheHost(t *testing.T) {
	h, _, ctx := start(t)
	worker := h.Host("worker-1")
	restart := func(attempt string) error {
		_, err := worker.Run(ctx, "systemd-run", "--unit=drydock-restart-"+hosts.KubeletUnit, "--description=drydock:"+attempt, "--collect",
			"--no-block", "--property=Type=oneshot", "--property=ExecStartPre=-/usr/bin/systemctl restart "+hosts.KubeletUnit, "/usr/bin/sleep", "60")
		return err
	}
	began := time.Now()
	require.NoError(t, restart("a1-1-1"))
	require.Eventually(t, func() bool { return len(by(t, worker, began)) == 1 }, lab.Patience, 50*time.Millisecond)
	require.Error(t, restart("b1-1-1"), "systemd refuses a second one while there is a first")
	_, err := worker.Run(ctx, "systemctl", "stop", "drydock-restart-"+hosts.KubeletUnit) // and another attempt succeeds afterwards
	require.NoError(t, err)
	require.Eventually(t, func() bool { return restart("c1-1-1") == nil }, lab.Patience, 50*time.Millisecond)
	require.Eventually(t, func() bool { return len(by(t, worker, began)) == 2 }, lab.Patience, 50*time.Millisecond)
	_, err = worker.Run(ctx, "systemctl", "restart", hosts.KubeletUnit)
	require.NoError(t, err)
	_, err = worker.Run(ctx, "systemctl", "kill", "--signal=KILL", hosts.KubeletUnit)
	require.NoError(t, err)
	want := []string{hosts.ByDrydock("a1-1-1"), hosts.ByDrydock("c1-1-1"), hosts.ByUnknown, hosts.BySystemd}
	require.Eventually(t, func() bool { return fmt.Sprint(by(t, worker, began)) == fmt.Sprint(want) }, lab.Patience, 50*time.Millisecond, "%v", by(t, worker, began))

	worker.Off()
	_, err = worker.Run(ctx, "true")
	require.Error(t, err)
	require.NoError(t, worker.On(ctx))
	require.Equal(t, want, by(t, worker, began), "the journal outlives the machine's power, and a boot is no restart")
	attempts, err := worker.Attempts(ctx, hosts.KubeletUnit)
	require.NoError(t, err)
	require.Equal(t, []string{"a1-1-1", "c1-1-1"}, attempts)
}

func TestAHostIsGoneWithItsPowerOrItsCable(t *testing.T) {
	h, l, ctx := start(t)
	h.Host("cp-1").Off()
	require.NoError(t, h.Host("worker-1").Unplug())
	require.Error(t, h.Host("cp-1").Ready(ctx))
	becomes(t, l, "cp-1", corev1.ConditionUnknown)
	becomes(t, l, "worker-1", corev1.ConditionUnknown)
	require.NoError(t, h.Heal(ctx))
	becomes(t, l, "cp-1", corev1.ConditionTrue)
	becomes(t, l, "worker-1", corev1.ConditionTrue)
}
