package mesh

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/mesh"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

// The main job, with every interval as shipped and as Kilo has it: the leader of west loses the new
// flows of its members.
func TestADegradedLeaderIsReplacedWithinTwoMinutes(t *testing.T) {
	mesh.Need(t)
	t.Parallel() // it mostly waits, so it does not disturb other tests
	y := newYardOf(t, own{
		network: mesh.New, lab: lab.Options{Interval: 10 * time.Second, GroupWait: time.Second, GroupInterval: time.Minute},
		checkIn: 30 * time.Second, admission: true,
	})
	// Prometheus scrapes from a pod, like any other program, so it cannot scrape a member that is
	// cut off.
	y.network.ScrapeFrom("cloud-2")
	y.run(shipped(), nil)
	y.await("Prometheus scrapes over the mesh", func() bool { return y.query(`sum(up{job="drydock-agent"})`) == 8 })

	require.NoError(t, y.network.DropNewVXLAN("west-1"))
	fault := time.Now()
	require.Error(t, y.network.Send(t.Context(), "east-3", "west-2"))
	passed := y.flows("east-3", "west-2", fault)
	t.Logf("the first packet from east-3 to west-2 passes %.1f s after the fault, with shipped intervals", passed.Seconds())
	require.Less(t, passed, 2*time.Minute) // nearly all of it are intervals: 66 s alone, 81 s beside all other tests
	y.deniedToOthers()
	y.flows("cloud-2", "west-3", fault)
	entry := y.ended("west-1")
	t.Logf("the repair ends %.1f s after the fault", entry.Ended.Sub(fault).Seconds())
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome)
	// The webhook may learn a moment later that the repair has ended.
	y.await("the lead is anybody's again", func() bool { return y.kilo.Lead(t.Context(), "west-3") == nil })
}

// deniedToOthers asserts that no person can move the leadership of west while the repair of west-1
// waits for its proof. It uses dry runs, which the webhook also receives: on a busy machine a late
// answer of the webhook is ignored, and then a real change would be made.
func (y *yard) deniedToOthers() {
	y.t.Helper()
	y.await("the move waits for its proof", func() bool { // packets flow before Drydock has recorded that it moved the leadership
		r := remediations.ReadJournal(y.node("west-1")).Records[remediations.LocationKey]
		return r != nil && r.Phase == remediations.PhaseVerifying
	})
	for node, value := range map[string]any{"west-1": "true", "west-2": nil, "west-3": "true"} {
		y.await("nobody else changes who leads, on "+node, func() bool {
			err := y.try(node, map[string]any{"metadata": map[string]any{"annotations": map[string]any{election.LeaderKey: value}}}, metav1.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "mesh-leader-degraded")
		})
	}
	require.Equal(y.t, []string{"west-2"}, y.annotated("west"))
}

// The same test with pods that have only IPv6 addresses.
func TestADegradedLeaderIsReplacedOverIPv6(t *testing.T) {
	turn(t)
	y := newYardOf(t, own{network: mesh.NewIPv6, lab: quickLab(), interval: quickRound})
	y.run(quick(), nil)
	require.NoError(t, y.network.DropNewVXLAN("west-1"))
	fault := time.Now()
	require.Error(t, y.network.Send(t.Context(), "east-3", "west-2"))
	t.Logf("the first packet passes %.1f s after the fault, over IPv6 and with short intervals", y.flows("east-3", "west-2", fault).Seconds())
	y.moved("west", "west-2")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("west-1").Outcome)
}

// shipped are the shipped values of settings that are shorter for a lab's Drydock otherwise. The
// policy is the shipped one.
func shipped() map[string]any {
	return map[string]any{"alertmanager": map[string]any{"pollInterval": "15s", "maxStaleness": "30s"}}
}

// S2-1 to S2-3, S2-6: probes fail, the leader is found to be the cause, another node leads, and
// packets flow again.
func TestADarkLocationGetsAnotherLeader(t *testing.T) {
	y := newYard(t)
	y.network.ScrapeFrom("cloud-2")
	y.run(quick(), nil)
	old, err := y.network.Connect(t.Context(), "east-3", "west-2")
	require.NoError(t, err)
	defer old.Close()
	require.NoError(t, mesh.Exchange(old))

	require.NoError(t, y.network.DropNewVXLAN("west-1"))
	fault := time.Now()
	for _, way := range [][2]string{{"east-3", "west-2"}, {"west-3", "cloud-2"}, {"west-1", "west-2"}} {
		require.Error(t, y.network.Send(t.Context(), way[0], way[1]), "%v", way)
	}
	// A detector must not rely on these: the leader answers pings, and so do the nodes behind it,
	// and old flows continue.
	require.NoError(t, mesh.Exchange(old))
	for _, n := range y.network.Nodes() {
		require.NoError(t, y.network.Ping("west-1", n.Name))
		require.NoError(t, y.network.Ping(n.Name, "west-1"))
	}
	y.await("probes say what there is", func() bool {
		return y.query(`count(drydock_mesh_probe_success{path="cross",src_role="leader",dst_location="west",dst_role="member"} == 0)`) > 0
	})
	y.await("the alert fires", func() bool { return y.fired("west") })
	alerted := time.Now()
	y.moved("west", "west-2")
	t.Logf("alert %.1f s after the fault, the leader moves %.1f s later", alerted.Sub(fault).Seconds(), time.Since(alerted).Seconds())
	t.Logf("the first packet passes %.1f s after the fault, with short intervals", y.flows("east-3", "west-2", fault).Seconds())
	y.flows("west-3", "cloud-2", fault)

	entry := y.ended("west-1")
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome)
	require.Equal(t, []string{"promote-leader:1"}, entry.Steps.Texts())
	require.Equal(t, "west", entry.Location)
	require.Equal(t, []string{"west-2"}, y.annotated("west"))
	require.NotEmpty(t, y.node("west-2").Annotations[election.WireGuardIPKey])
	require.Empty(t, y.node("west-1").Annotations[election.WireGuardIPKey])
	require.NotContains(t, y.node("west-1").Annotations, remediations.LocationKey, "the record's end is in the history")
	for _, n := range []string{"west-2", "west-3"} {
		require.Empty(t, y.entries(n))
	}
	for _, n := range y.nodes() {
		require.False(t, n.Spec.Unschedulable, "a move cordons nobody")
		require.NotContains(t, n.Annotations, election.LocationKey)
	}
	y.unmoved("east", "east-1")
	y.unmoved("cloud", "cloud-1")
	require.Len(t, y.kilo.Leads(), 4, "three first ones, and one move: %v", y.kilo.Leads())
}

// limits.leaders.concurrent: the locations are repaired one after the other.
func TestTwoLeadersThatFailAtOnceAreReplacedOneAfterTheOther(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	for _, n := range []string{"west-1", "east-1"} {
		require.NoError(t, y.network.DropVXLAN(n))
	}
	fault := time.Now()
	west, east := y.ended("west-1"), y.ended("east-1")
	for _, way := range [][2]string{{"west-3", "east-3"}, {"cloud-2", "west-2"}, {"east-2", "cloud-2"}} {
		y.flows(way[0], way[1], fault)
	}
	moves := y.kilo.Leads()[3:]
	require.Len(t, moves, 2)
	first, second := west, moves[1]
	if moves[0].Location == "east" {
		first = east
	}
	require.Equal(t, remediations.OutcomeRecovered, west.Outcome)
	require.Equal(t, remediations.OutcomeRecovered, east.Outcome)
	require.False(t, second.At.Before(first.Ended.Truncate(time.Second)), "the second moves when the first is proved: %v, %v", second, first)
	y.unmoved("cloud", "cloud-1")
}

// The successor relays nothing either. No probe to a sibling can show that before, so the repair
// needs a second move. The location has five nodes. After the first move, the old leader is a
// member that reports faults of all others, and must not outvote the three healthy ones. If the
// alert ends for a moment between the two moves, it fires again.
func TestASuccessorThatIsBadAsWellGivesWayToTheNext(t *testing.T) {
	turn(t)
	y := newYardOf(t, own{network: mesh.New, lab: quickLab(), interval: quickRound}, mesh.Location{Name: "west", Nodes: 5}, mesh.Location{Name: "east", Nodes: 3}, mesh.Location{Name: "cloud", Nodes: 2})
	// Only the move that helps has a long time for its proof.
	y.run(quickly([]any{
		map[string]any{"step": "promote-leader", "wait": "1m", "attempts": 1},
		map[string]any{"step": "promote-leader", "wait": "5m", "attempts": 1},
	}), nil)
	require.NoError(t, y.network.DropRelayed("west-2"))
	require.NoError(t, y.network.DropVXLAN("west-1"))
	fault := time.Now()
	y.moved("west", "west-3")
	y.flows("east-2", "west-2", fault)
	entry := y.ended("west-1")
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome)
	require.Equal(t, []string{"promote-leader:1", "promote-leader:1"}, entry.Steps.Texts())
	require.Equal(t, []string{"west-3"}, y.annotated("west"))
	var led []string
	for _, l := range y.kilo.Leads() {
		if l.Location == "west" {
			led = append(led, l.Node)
		}
	}
	require.Equal(t, []string{"west-1", "west-2", "west-3"}, led)
}

// limits.leaders.perLocation: if a location fails again soon, its leadership is not moved again,
// and its leader's Node says so.
func TestALocationThatFailsAgainSoonIsHeld(t *testing.T) {
	y := newYard(t)
	d := y.run(quick(), nil)
	require.NoError(t, y.network.DropVXLAN("west-1"))
	y.moved("west", "west-2")
	require.Equal(t, remediations.OutcomeRecovered, y.ended("west-1").Outcome)
	require.NoError(t, y.network.Heal("west-1"))
	y.allWell()
	require.NoError(t, y.network.DropVXLAN("west-2"))
	fault := time.Now()
	y.await("it is held", func() bool {
		r := remediations.ReadJournal(y.node("west-2")).Records[remediations.LocationKey]
		return r != nil && r.Hold != nil && r.Hold.Reason == remediations.ReasonCooldown
	})
	held := remediations.ReadJournal(y.node("west-2")).Records[remediations.LocationKey]
	require.Equal(t, remediations.PhasePending, held.Phase)
	y.await("it is said", func() bool {
		return slices.ContainsFunc(y.events(), func(e string) bool { return strings.HasPrefix(e, "west-2 RepairHeld: Cooldown") })
	})
	y.patience()
	require.Equal(t, "west-2", y.kilo.Leader("west"))
	require.Error(t, y.network.Send(t.Context(), "east-3", "west-3"), "it fails all the time")
	plugin, err := y.lab.PluginProgram(t.Context())
	require.NoError(t, err)
	why := exec.CommandContext(t.Context(), plugin, "--kubeconfig", y.lab.AdminKubeconfig(), "why", "west-2", "--config", d.ConfigFile)
	said, _ := why.CombinedOutput()
	require.Equal(t, 3, why.ProcessState.ExitCode(), "%s", said)
	require.Contains(t, string(said), "west-2 (leader of west) is not repaired: Cooldown holds it")
	require.Regexp(t, `Cooldown +HOLDS +repair [a-z0-9]+ moved the leadership of location west at `, string(said))
	require.Regexp(t, `LeaderUnknown +not seen +not asked from here: `, string(said))

	// Only that limit holds the repair: with a shorter limit the same repair continues.
	y.stop(d)
	short := quick()
	short["limits"] = map[string]any{"leaders": map[string]any{"perLocation": "1m"}}
	y.run(short, nil)
	y.flows("east-3", "west-1", fault)
	entry := y.ended("west-2")
	require.Equal(t, remediations.OutcomeRecovered, entry.Outcome)
	require.Equal(t, held.ID, entry.ID)
}

// A leader that lets only small packets through does not work.
func TestALeaderThatLosesLargePacketsIsReplaced(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	require.NoError(t, y.network.DropLarge("east-1"))
	fault := time.Now()
	y.moved("east", "east-2")
	y.flows("west-2", "east-3", fault)
	require.Equal(t, remediations.OutcomeRecovered, y.ended("east-1").Outcome)
	y.unmoved("west", "west-1")
}

// curable are the lab's machines, whose network a reboot cures.
type curable struct {
	civosim.Machines
	network *mesh.Network
}

func (m curable) Reboot(ctx context.Context, in civosim.Instance, bootID string, cured bool) error {
	if err := m.network.Heal(in.Hostname); err != nil {
		return err
	}
	return m.Machines.Reboot(ctx, in, bootID, cured)
}

// Two plans follow each other: after the move, the old leader is a normal node, with an alert and a
// policy of its own.
func TestTheOldLeaderIsRebootedByItsOwnPolicyAfterwards(t *testing.T) {
	y := newYard(t)
	civo, err := y.lab.StartCivo(t.Context(), lab.CivoOptions{RebootTime: time.Second, Machines: curable{y.lab.Machines(), y.network}})
	require.NoError(t, err)
	t.Cleanup(civo.Close)
	y.run(quick(map[string]any{
		"name": "mesh-forwarding-fault", "match": []string{`remediation="mesh-forwarding-fault"`}, "for": "20s", // longer than the leader's, because the rule about the node waits longer
		"proofFor": "2s", "cooldown": "0s", "approval": false, "plan": []any{map[string]any{"step": "reboot", "wait": "5m"}},
	}), civo)
	require.NoError(t, y.network.DropVXLAN("west-1"))
	moved := y.ended("west-1")
	require.Equal(t, remediations.OutcomeRecovered, moved.Outcome)
	var reboot remediations.Entry
	y.await("west-1 was rebooted, and is well", func() bool {
		for _, e := range remediations.DecodeHistory(y.node("west-1").Annotations[remediations.HistoryKey]) {
			if e.Location == "" {
				reboot = e
			}
		}
		return reboot.ID != ""
	})
	require.Equal(t, remediations.OutcomeRecovered, reboot.Outcome)
	calls := civo.Done(civosim.HardReboots)
	require.Len(t, calls, 1)
	require.False(t, calls[0].At.Before(moved.Ended.Truncate(time.Second)), "one after the other")
	y.await("all pods reach each other", func() bool { return len(y.network.Mute(t.Context())) == 0 })
	require.Equal(t, "west-2", y.kilo.Leader("west"), "it is a member now: nothing fails back by itself")
}

// A person moves the leadership while Drydock waits for the proof of its own move. The person's
// choice stays, and Drydock does not move it again.
func TestALeaderThatAPersonMovesMeanwhileIsTheirs(t *testing.T) {
	y := newYard(t)
	y.run(quick(), nil)
	require.NoError(t, y.network.DropRelayed("west-2"))
	require.NoError(t, y.network.DropVXLAN("west-1"))
	y.moved("west", "west-2")
	require.NoError(t, y.kilo.Lead(t.Context(), "west-3"))
	require.Equal(t, remediations.OutcomeSuperseded, y.ended("west-1").Outcome)
	y.await("the alert ends", func() bool { return !slices.Contains(y.firing(), "MeshLeaderDegraded/west/") })
	require.Equal(t, []string{"west-3"}, y.annotated("west"))
	require.Len(t, y.kilo.Leads(), 5, "three first ones, Drydock's move and the person's: %v", y.kilo.Leads())
}
