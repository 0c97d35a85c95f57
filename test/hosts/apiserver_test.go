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

// control are the hosts of the API servers, in the configuration's order.
var control = []string{"cp-1", "cp-2", "cp-3"}

// breakAll breaks the kubelets, and with them the API servers, of these hosts, and waits until none
// answers anywhere: without two members there is no etcd. Drydock is stopped meanwhile, or it would
// begin to repair them before all are seen to be gone.
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

// answers waits for an API server that is ready.
func (y *yard) answers() {
	y.t.Helper()
	y.await("an API server answers", func() bool {
		return slices.ContainsFunc(control, func(name string) bool { return y.hosts.Host(name).Ready(y.t.Context()) == nil })
	})
}

// claimed ends Drydock and compares what its journal claims of a rescue with what the hosts' own
// journals show. It returns the hosts that were restarted, in their order.
func (y *yard) claimed(d *lab.Drydock, id string) []string {
	y.t.Helper()
	d.Kill() // the state directory is its alone
	f, err := statefile.Open(y.state, clock.RealClock{})
	require.NoError(y.t, err)
	defer func() { require.NoError(y.t, f.Close()) }()
	journal, err := f.Load()
	require.NoError(y.t, err)
	require.NoError(y.t, journal.Malformed)
	var restarted, claims, shown []string
	for _, e := range journal.Ended {
		for _, try := range e.Hosts {
			// One without an outcome, or an unknown one, counts as issued.
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

// One API server of three does not count as a fault of the control plane: its node is lost, and
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

// Two of three, and none answers: the third has no etcd. Restarting the first that fails gives two
// back, which ends the rescue; the other is repaired as a node. The third answers as soon as the
// first has its etcd back, which has its own API server later.
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

// All three, stopped or hanging: the first two in the configuration's order make a majority.
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

// A host without SSH, and one that does not prove to be the host, are passed over; the others
// suffice.
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

// Drydock is killed while it rescues, and started again while there is still no API server: nothing
// is restarted twice.
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

// Two replicas, each with a state directory of its own, see the same fault: no host is restarted
// twice.
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
