package hosts

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/rescue/statefile"
)

// control are the hosts of the API servers, in the order of the configuration.
var control = []string{"cp-1", "cp-2", "cp-3"}

// breakAll breaks the kubelets of these hosts, and with them the API servers, and waits until no
// API server answers. Without two members there is no etcd. Drydock is stopped meanwhile. Otherwise
// it would begin to repair before all of them are down.
func (y *yard) breakAll(fault func(*hosts.Host, context.Context) error, names ...string) {
	y.t.Helper()
	for _, d := range y.running {
		require.NoError(y.t, d.Signal(syscall.SIGSTOP))
	}
	for _, name := range names {
		require.NoError(y.t, fault(y.hosts.Host(name), y.t.Context()))
	}
	for _, name := range control {
		y.await("the API server of "+name+" is gone", func() bool { return y.hosts.Host(name).Ready(y.t.Context()) != nil })
	}
	for _, d := range y.running {
		require.NoError(y.t, d.Signal(syscall.SIGCONT))
	}
}

// answers waits until an API server is ready.
func (y *yard) answers() {
	y.t.Helper()
	y.await("an API server answers", func() bool {
		return slices.ContainsFunc(control, func(name string) bool { return y.hosts.Host(name).Ready(y.t.Context()) == nil })
	})
}

// claimed ends Drydock, and compares what its journal says about a rescue with the hosts' own
// journals. It returns the hosts that were restarted, in order.
func (y *yard) claimed(d *lab.Drydock, id string) []string {
	y.t.Helper()
	d.Kill() // only one process may use the state directory
	f, err := statefile.Open(y.state, clock.RealClock{})
	require.NoError(y.t, err)
	defer func() { require.NoError(y.t, f.Close()) }()
	journal, err := f.Load()
	require.NoError(y.t, err)
	require.NoError(y.t, journal.Malformed)
	var restarted, claims, shown []string
	for _, e := range journal.Ended {
		for _, try := range e.Hosts {
			// A restart without an outcome, or with an unknown one, counts as issued.
			if e.ID == id && try.Outcome != remediations.CallRefused {
				restarted, claims = append(restarted, try.Host), append(claims, try.Host+" "+hosts.ByDrydock(try.Attempt))
			}
		}
	}
	for _, name := range control {
		for _, by := range y.restarts(name) {
			if strings.HasPrefix(by, hosts.ByDrydock(id)) {
				shown = append(shown, name+" "+by)
			}
		}
	}
	require.ElementsMatch(y.t, claims, shown, "the record, and what the hosts' journals show")
	return restarted
}

// One broken API server of three is not a fault of the control plane. Its node is lost, and is
// repaired as a node.
func TestOneAPIServerThatIsGoneIsRepairedAsANode(t *testing.T) {
	y := newYard(t)
	y.run(y.config(nodePolicy(wait), apiPolicy()))
	require.NoError(t, y.hosts.Host("cp-2").Stop(t.Context()))
	e := y.ended("cp-2")
	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Equal(t, attempts(e.ID, "0-1"), y.restarts("cp-2"))
	require.NoError(t, y.hosts.Host("cp-2").AwaitAPI(t.Context()))
	require.Empty(t, y.restarts("cp-1"))
	require.Empty(t, y.restarts("cp-3"))
	require.Empty(t, y.entries("cp-2", string(remediations.KindAPIServer)))
}

// Two of three are broken, and none answers, because the third has no etcd. Restarting the first
// broken one makes two answer again, which ends the rescue. The other one is repaired as a node.
// The third answers as soon as the first has its etcd back. The first one's own API server answers
// later.
func TestTwoAPIServersThatAreGoneAreRescued(t *testing.T) {
	y := newYard(t)
	d := y.run(y.config(nodePolicy(wait), apiPolicyProven(90*time.Second)))
	y.breakAll((*hosts.Host).Stop, "cp-1", "cp-2")

	y.answers()
	e := y.rescued("cp-1")

	require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
	require.Empty(t, y.restarts("cp-3"), "it ran, and was not touched")
	y.ready("cp-2", corev1.ConditionTrue)
	require.NoError(t, y.hosts.Host("cp-2").AwaitAPI(t.Context()))
	require.Equal(t, []string{"cp-1"}, y.claimed(d, e.ID))
}

// All three are stopped or hang. The first two in the configuration's order make a majority.
func TestAllAPIServersAreRescuedOneAfterTheOther(t *testing.T) {
	ways := map[string]func(*hosts.Host, context.Context) error{"stopped": (*hosts.Host).Stop, "hanging": (*hosts.Host).Hang}
	for name, fault := range soak.OneOf(t, ways) {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			d := y.run(y.config(nodePolicy(wait), apiPolicy()))
			y.breakAll(fault, control...)

			y.answers()
			e := y.rescued("cp-1")

			require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
			for _, name := range control {
				require.NoError(t, y.hosts.Host(name).AwaitAPI(t.Context()))
			}
			require.Equal(t, []string{"cp-1", "cp-2"}, y.claimed(d, e.ID))
		})
	}
}

// A host without SSH, and a host that does not prove its identity, are skipped. The others are
// enough.
func TestAHostThatCannotBeRestartedIsPassedOver(t *testing.T) {
	ways := map[string]func(*hosts.Host, context.Context) error{
		"dead": (*hosts.Host).SSHDead, "hanging": (*hosts.Host).SSHHangs, "another key": (*hosts.Host).WrongHostKey,
	}
	for name, fault := range soak.OneOf(t, ways) {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			d := y.run(y.config(nodePolicy(wait), apiPolicy()))
			require.NoError(t, fault(y.hosts.Host("cp-1"), t.Context()))
			y.breakAll((*hosts.Host).Stop, control...)

			y.answers()
			e := y.rescued("cp-2")

			require.Equal(t, remediations.OutcomeRecovered, e.Outcome, e.Why)
			require.Equal(t, []string{"cp-2", "cp-3"}, y.claimed(d, e.ID))
			require.Empty(t, y.restarts("cp-1"))
		})
	}
}

// Drydock is killed while it rescues, and started again while no API server answers yet. No host is
// restarted twice.
func TestKilledInTheMiddleOfARescue(t *testing.T) {
	y := newYard(t)
	d := y.run(y.config(nodePolicy(wait), apiPolicy()))
	y.breakAll((*hosts.Host).Stop, control...)
	y.attempted("cp-1")
	d.Kill()
	require.NoError(t, d.Start(t.Context()))

	y.answers()
	e := y.rescued("cp-1")

	require.Contains(t, []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeSelfRecovered}, e.Outcome, e.Why)
	require.Equal(t, []string{"cp-1", "cp-2"}, y.claimed(d, e.ID))
}

// Two replicas, each with its own state directory, see the same fault. No host is restarted twice.
func TestTwoReplicasRestartNoHostTwice(t *testing.T) {
	y := newYard(t)
	y.run(y.config(nodePolicy(wait), apiPolicy()))
	second := y.config(nodePolicy(wait), apiPolicy())
	second["stateDir"] = t.TempDir()
	d, err := y.lab.StartDrydock(t.Context(), shared.token, lab.DrydockOptions{Name: "drydock-2", Config: second})
	require.NoError(t, err)
	t.Cleanup(d.Kill)
	y.running = append(y.running, d)
	y.breakAll((*hosts.Host).Stop, control...)
	y.answers()
	for _, name := range control {
		require.NoError(t, y.hosts.Host(name).AwaitAPI(t.Context()))
		require.Len(t, y.restarts(name), 1, "of %s", name)
	}
}
