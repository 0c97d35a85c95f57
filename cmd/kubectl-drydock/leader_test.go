package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// elsewhere is a Lease of another program: with it, the desk makes no leader.
func elsewhere() *coordinationv1.Lease {
	l := leaseOf("other-0", now)
	l.Name = "other"
	return l
}

// TestWhyAndStatusSayThatNoReplicaLeads, before everything else. Where a replica leads, neither
// says anything.
func TestWhyAndStatusSayThatNoReplicaLeads(t *testing.T) {
	t.Parallel()
	lost := leaseOf("drydock-0", now.Add(-20*time.Minute))
	verifying := illNode(with(record("aaaaaa", remediations.PhaseVerifying, illCause)))
	paused := illNode(func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true ticket 12" })
	const since = "no replica leads since 2026-11-20T20:45:00Z (20m ago): "
	for name, c := range map[string]struct {
		node  *corev1.Node
		lease *coordinationv1.Lease
		code  int
		// The texts of the commands why (none) and status about the leader. An empty text means that the
		// command says nothing about it.
		none, status string
		says         []string
	}{
		"a replica leads":        {node: illNode(), lease: leaseOf("drydock-0", now), code: 4, says: []string{"about to be repaired"}},
		"a change of the leader": {node: illNode(), lease: leaseOf("drydock-0", now.Add(-70*time.Second)), code: 4},
		"longer than that": {
			node: illNode(), lease: leaseOf("drydock-0", now.Add(-80*time.Second)), code: 3,
			none: "no replica leads since 2026-11-20T21:03:40Z (80s ago): ", status: "no replica leads since 2026-11-20T21:03:40Z",
		},
		"it went away": {
			node: illNode(), lease: lost, code: 3, none: since + "drydock-0 renewed Lease drydock/drydock for the last time then, by the clock of this machine.",
			status: since, says: []string{
				"\nnode-3 is not repaired: NoLeader holds it.\nTo change that: kubectl get pods -n drydock -l app.kubernetes.io/name=drydock\n",
				"Next:     reboot:1 by civo, once a replica of Drydock leads",
			},
		},
		"it stopped": {node: illNode(), lease: leaseOf("", now.Add(-20*time.Minute)), code: 3, none: since + "the last leader gave up Lease drydock/drydock.", status: since},
		"it never led": {
			node: illNode(), lease: elsewhere(), code: 3, none: "no replica leads: there is no Lease drydock/drydock.",
			status: "not seen: there is no Lease drydock/drydock; it may have another name or namespace",
		},
		"in the midst of a repair": {node: verifying, lease: lost, code: 3, none: since, status: since, says: []string{"NoLeader holds it", "aaaaaa by policy node-not-ready: Verifying"}},
		"a guard holds it, too":    {node: paused, lease: lost, code: 3, none: since, status: since, says: []string{"Paused holds it.", "kubectl drydock resume node-3"}},
		"a well node": {
			node: aged("node-3", corev1.ConditionTrue), lease: lost, code: 0, none: since, status: since,
			says: []string{"Drydock does not repair node-3 now: Alertmanager has alert NodeNotReady for policy node-not-ready since 2026-11-20T20:53:00Z, but Drydock has not written it on the Node; "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, append(fleetOf(c.node), c.lease)...)
			code, stdout, stderr := d.run("why", "node-3", "--alertmanager", alertmanagerWith(t))
			require.Empty(t, stderr)
			require.Equal(t, c.code, code, stdout)
			_, seen, _ := d.run("status")
			if c.none == "" {
				require.NotContains(t, stdout, "no replica leads")
				require.NotContains(t, seen, "Leader:")
			} else {
				require.Regexp(t, `\ADrydock does nothing: `, stdout)
				require.Contains(t, stdout, c.none)
				require.Regexp(t, `\ALeader:   `, seen)
				require.Contains(t, seen, c.status)
			}
			require.NotContains(t, stdout, "Unseen")
			for _, text := range c.says {
				require.Contains(t, stdout, text)
			}
		})
	}
}

// TestALeaseThatSaysNothingIsNotSeen: nothing is held by it, and nothing passes for seen.
func TestALeaseThatSaysNothingIsNotSeen(t *testing.T) {
	t.Parallel()
	silent := leaseOf("drydock-0", now)
	silent.Spec.RenewTime = nil
	for name, c := range map[string]struct {
		lease  *coordinationv1.Lease
		config string
		forbid bool
		want   string
	}{
		"forbidden":         {leaseOf("drydock-0", now.Add(-time.Hour)), whyConfig, true, "leases.coordination.k8s.io is forbidden"},
		"never renewed":     {silent, whyConfig, false, "Lease drydock/drydock has no time of renewal"},
		"in the future":     {leaseOf("drydock-0", now.Add(time.Hour)), whyConfig, false, "which is in the future by the clock of this machine"},
		"without elections": {leaseOf("drydock-0", now.Add(-time.Hour)), whyConfig + "leaderElection: {enabled: false}\n", false, "leaderElection.enabled is false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := append(fleetOf(illNode()), c.lease)
			objects[1] = installedWith(c.config)
			d := newDesk(t, objects...)
			if c.forbid {
				d.cluster.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "", nil)
				})
			}
			code, stdout, stderr := d.run("why", "node-3", "--alertmanager", alertmanagerWith(t))
			require.Empty(t, stderr)
			require.Equal(t, 4, code, stdout)
			require.Regexp(t, `Unseen: +whether a replica of Drydock leads: .*`+c.want, stdout)
			require.NotContains(t, stdout, "Drydock does nothing")
		})
	}
}

// TestTheElectionOfTheConfigurationIsRead, and not a Lease of the usual name.
func TestTheElectionOfTheConfigurationIsRead(t *testing.T) {
	t.Parallel()
	named := leaseOf("drydock-0", now)
	named.Namespace, named.Name = "ops", "repairs"
	objects := append(fleetOf(illNode()), named, leaseOf("drydock-0", now.Add(-time.Hour)))
	objects[1] = installedWith(whyConfig + "leaderElection: {namespace: ops, name: repairs}\n")
	d := newDesk(t, objects...)
	code, stdout, _ := d.run("why", "node-3", "--alertmanager", alertmanagerWith(t), "-o", "json")
	require.Equal(t, 4, code, stdout)
	var answer inspect.Why
	require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
	require.Equal(t, inspect.Leadership{Lease: "ops/repairs", Holder: "drydock-0"}, answer.Leader)

	require.NoError(t, d.cluster.CoordinationV1().Leases("ops").Delete(t.Context(), "repairs", metav1.DeleteOptions{}))
	code, stdout, _ = d.run("why", "node-3", "--alertmanager", alertmanagerWith(t))
	require.Equal(t, 3, code, stdout)
	require.Contains(t, stdout, "there is no Lease ops/repairs")

	renamed := leaseOf("drydock-0", now.Add(-time.Hour))
	renamed.Name = "repairs"
	_, stdout, _ = newDesk(t, ledgerOf(calmLedger()), renamed).run("status", "--lease", "repairs")
	require.Contains(t, stdout, "drydock-0 renewed Lease drydock/repairs for the last time then")
}

// TestWhyWithoutDrydock: an alert that an earlier Drydock left on the node repairs nothing.
func TestWhyWithoutDrydock(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := newDesk(t, illNode(), elsewhere()).run("why", "node-3")
	require.Equal(t, 3, code, stderr)
	require.Regexp(t, `\ADrydock does nothing: no Drydock was found: there is no ConfigMap drydock-ledger`, stdout)
	code, stdout, _ = newDesk(t, ledgerOf(calmLedger()), illNode(), elsewhere()).run("why", "node-3")
	require.Equal(t, 5, code, "Drydock is there, and its Lease may have another name")
	require.Contains(t, stdout, "whether a replica of Drydock leads: there is no Lease drydock/drydock; it may have another name or namespace\n")
	code, stdout, _ = newDesk(t, illNode()).run("why", "node-3")
	require.Equal(t, 5, code, "the control: a replica leads")
	require.NotContains(t, stdout, "Drydock does nothing")
}

// TestTheClockIsTheAPIServers: a machine whose clock is wrong does not call a leader lost.
func TestTheClockIsTheAPIServers(t *testing.T) {
	t.Parallel()
	for name, date := range map[string]string{"dated": now.Format(http.TimeFormat), "undated": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = []string{date}
				w.Header().Set("Content-Type", "application/json")
				l := leaseOf("drydock-0", now.Add(-5*time.Second))
				l.APIVersion, l.Kind = "coordination.k8s.io/v1", "Lease"
				_ = json.NewEncoder(w).Encode(l)
			}))
			t.Cleanup(server.Close)
			p := newDesk(t).plugin
			p.flags.APIServer = &server.URL
			p.now = func() time.Time { return now.Add(time.Hour) }
			c, err := p.connectByFlags()
			require.NoError(t, err)
			l, err := p.reader(c).ReadLeader(t.Context(), "drydock", "drydock")
			require.NoError(t, err)
			if date != "" {
				require.Equal(t, inspect.Leadership{Lease: "drydock/drydock", Holder: "drydock-0"}, l)
			} else {
				require.Contains(t, l.None, "by the clock of this machine", "the control")
			}
		})
	}
}

// TestStatusFollowsTheLeader: -w reports that no replica leads, and the end of that.
func TestStatusFollowsTheLeader(t *testing.T) {
	t.Parallel()
	d := newDesk(t, ledgerOf(calmLedger()), node("node-1", nil), leaseOf("drydock-0", now.Add(-time.Hour)))
	stop := d.watching("status", "-w")
	d.sees("Leader:   no replica leads since 2026-11-20T20:05:00Z (60m ago): drydock-0 renewed Lease drydock/drydock for the last time then, by the clock of this machine; until a replica leads, Drydock does nothing\n")
	_, err := d.cluster.CoordinationV1().Leases("drydock").Update(t.Context(), leaseOf("drydock-1", now), metav1.UpdateOptions{})
	require.NoError(t, err)
	d.put(under("node-1", record("aaaaaa", remediations.PhaseActing)))
	d.sees("Leader: a replica leads\n")
	require.Equal(t, cli.ExitOK, stop())
}

// TestWhyReadsTheConfigurationBesideTheLedger, where the caller may list ConfigMaps there alone.
func TestWhyReadsTheConfigurationBesideTheLedger(t *testing.T) {
	t.Parallel()
	d := newDesk(t, fleetOf(illNode())...)
	forbid(d, "list", "configmaps") // but in one namespace
	_, stdout, stderr := d.run("why", "node-3")
	require.Empty(t, stderr)
	require.Contains(t, stdout, "GUARD")
	d.forbid("list", "configmaps")
	_, stdout, stderr = d.run("why", "node-3")
	require.Empty(t, stderr)
	require.Contains(t, stdout, "Unseen:   Drydock's configuration: ")
}

// TestWhyShowsTheRecordedHoldOfOtherTargets alone, and says so. A repair of the node itself has no
// such line.
func TestWhyShowsTheRecordedHoldOfOtherTargets(t *testing.T) {
	t.Parallel()
	const line = "the guards were not asked about this repair; its last recorded hold: "
	n := aged("node-3", corev1.ConditionTrue)
	n.Labels[remediations.PhaseLabel] = string(remediations.PhasePending)
	n.Annotations[remediations.LocationKey] = record("eeeeee", remediations.PhasePending, held(remediations.ReasonSilenced, "silenced by alice", time.Time{}), func(r *remediations.Record) {
		r.Step, r.Policy, r.Location = remediations.StepRef{Name: "promote-leader", Attempt: 1}, "mesh-leader-degraded", "fra1"
	}).Encode()
	code, stdout, stderr := newDesk(t, fleetOf(n)...).run("why", "node-3")
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stdout, "- "+line+"Silenced: silenced by alice\n")
	_, stdout, _ = newDesk(t, fleetOf(illNode(with(record("aaaaaa", remediations.PhaseVerifying, illCause))))...).run("why", "node-3")
	require.NotContains(t, stdout, line)
}
