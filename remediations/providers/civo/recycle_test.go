package civo

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// TestSoftRebootIsTheOtherCall: the provider receives a different call for each of the two reboots.
func TestSoftRebootIsTheOtherCall(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	require.NoError(t, c.SoftReboot(t.Context(), node1, nil))
	require.Empty(t, sim.CallsTo(civosim.HardReboots))
	require.NoError(t, c.Reboot(t.Context(), node1, nil))
	soft := sim.Done(civosim.SoftReboots)
	require.Len(t, soft, 1)
	require.Equal(t, "/v2/instances/i-1/soft_reboots", soft[0].Path)
	require.JSONEq(t, `{"region":"LON1"}`, soft[0].Body)

	sim.InjectNext(civosim.SoftReboots, 1, civosim.Failed())
	requireRefused(t, c.SoftReboot(t.Context(), node1, nil), reasonRejected, `soft-rebooting node "node-1" (instance i-1)`)
}

// TestRecycleNamesTheExactHostname: the whole of a replacement, on the wire.
func TestRecycleNamesTheExactHostname(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	c := client(t, sim.URL())
	seen, err := c.Look(t.Context(), node1)
	require.NoError(t, err)
	require.Empty(t, sim.Done(civosim.Any), "looking changes nothing")
	require.False(t, seen.Newest.IsZero())
	want := before
	want.Newest = seen.Newest
	require.Equal(t, want, seen)

	require.NoError(t, c.Recycle(t.Context(), node1, seen, nil))
	calls := sim.CallsTo(civosim.Recycle)
	require.Len(t, calls, 1)
	require.Equal(t, "/v2/kubernetes/clusters/"+clusterID+"/recycle", calls[0].Path)
	require.JSONEq(t, `{"hostname":"node-1","region":"LON1"}`, calls[0].Body)
	require.Contains(t, calls[0].Done, "recycle i-1 as ")
	require.Len(t, sim.Done(civosim.Any), 1, "one machine, once")
}

// TestOnlyTheMachineThatWasLookedAtIsRecycled: every state that could make the hostname another
// machine's is refused.
func TestOnlyTheMachineThatWasLookedAtIsRecycled(t *testing.T) {
	t.Parallel()
	list := func(entries ...map[string]any) civosim.Fault { return civosim.Answer(200, entries) }
	instance := func(id, hostname, status string) map[string]any {
		return map[string]any{"id": id, "hostname": hostname, "status": status}
	}
	for name, tc := range map[string]struct {
		machine engine.Machine
		fault   civosim.Fault
		why     reason
		text    string
	}{
		"no provider ID": {machine: engine.Machine{Node: "node-1"}, why: reasonNotFound, text: "no spec.providerID"},
		"partial match":  {machine: node1, fault: civosim.Missing("node-1"), why: reasonNotFound, text: "no longer exists"},
		"two of one hostname": {
			machine: node1, fault: civosim.Twice("node-1"), why: reasonAmbiguous, text: "2 instances have it: i-1, ",
		},
		"two but for the letters": {
			machine: node1, fault: list(instance("i-1", "node-1", active), instance("i-2", "Node-1", active)),
			why: reasonAmbiguous, text: "2 instances have it: i-1, i-2",
		},
		"hostname in other letters": {
			machine: node1, fault: list(instance("i-1", "Node-1", active)), why: reasonAmbiguous, text: `"Node-1", which is not exactly`,
		},
		"no hostname":   {machine: node1, fault: list(instance("i-1", "", active)), why: reasonAmbiguous, text: "not exactly the node's name"},
		"another's ID":  {machine: engine.Machine{Node: "node-1", ProviderID: "civo://i-10"}, why: reasonAmbiguous, text: "another host"},
		"being deleted": {machine: node1, fault: list(instance("i-1", "node-1", deleting)), why: reasonInTransition, text: "the instance is DELETING"},
		"being built":   {machine: node1, fault: list(instance("i-1", "node-1", building)), why: reasonInTransition, text: "the instance is BUILDING"},
		"it has GPUs": {
			machine: node1, why: reasonGPUs, text: "the instance has 8 GPUs",
			fault: list(map[string]any{"id": "i-1", "hostname": "node-1", "status": active, "gpu_count": 8}),
		},
		"successor, same name": {
			machine: engine.Machine{Node: "node-1", ProviderID: "civo://i-2"}, fault: list(instance("i-2", "node-1", active)), why: reasonChanged,
			text: `the recorded machine is instance "i-1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			if tc.fault.String() != "" {
				sim.Inject(civosim.ListInstances, tc.fault)
			}
			c := client(t, sim.URL())
			requireRefused(t, c.Recycle(t.Context(), tc.machine, before, nil), tc.why, "recycling node", tc.text)
			require.Empty(t, sim.CallsTo(civosim.Recycle))
			if tc.why != reasonChanged {
				_, err := c.Look(t.Context(), tc.machine)
				requireRefused(t, err, tc.why, "looking up node", tc.text)
			}
		})
	}
}

func TestNoPoolNoReplacement(t *testing.T) {
	t.Parallel()
	pool := func(id string, count int, instances ...string) map[string]any {
		members := []any{}
		for _, in := range instances {
			members = append(members, map[string]any{"id": in, "status": active})
		}
		return map[string]any{"id": id, "count": count, "instances": members}
	}
	for name, tc := range map[string]struct {
		pools []any
		why   reason
		text  string
	}{
		"none":       {nil, reasonNotFound, "no node pool"},
		"another's":  {[]any{pool("p", 1, "i-10")}, reasonNotFound, "no node pool of cluster " + clusterID + " lists the instance"},
		"part of ID": {[]any{pool("p", 1, "i-")}, reasonNotFound, "no node pool"},
		"two":        {[]any{pool("p", 1, "i-1"), pool("q", 1, "i-1")}, reasonAmbiguous, "2 node pools"},
		"no count":   {[]any{pool("p", 0, "i-1")}, reasonBadAnswer, "0 instances"},
		"evil ID":    {[]any{pool("../p", 1, "i-1")}, reasonBadAnswer, `"../p"`},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			sim.Inject(civosim.ListPools, civosim.Answer(200, tc.pools))
			_, err := client(t, sim.URL()).Look(t.Context(), node1)
			requireRefused(t, err, tc.why, `looking up node "node-1" (instance i-1)`, tc.text)
		})
	}
}

// TestFaultsOfTheRecycle: a recycle that may have been done is never a refusal, and is never sent
// twice.
func TestFaultsOfTheRecycle(t *testing.T) {
	t.Parallel()
	const unknown reason = ""
	for name, tc := range map[string]struct {
		fault civosim.Fault
		why   reason
		done  int
	}{
		"200 and failed":      {fault: civosim.Failed(), why: reasonRejected},
		"node just gone":      {fault: civosim.Answer(404, map[string]any{"code": "database_kubernetes_node_not_found", "reason": "x"}), why: reasonNotFound},
		"rate limit":          {fault: civosim.Answer(429, map[string]any{"code": "slow_down", "reason": "x"}), why: reasonUnavailable},
		"cluster just gone":   {fault: civosim.Answer(404, map[string]any{"code": "database_kubernetes_cluster_not_found", "reason": "x"}), why: reasonUnknownCluster},
		"500 after the work":  {fault: civosim.After(civosim.ServerError()), why: unknown, done: 1},
		"408 after the work":  {fault: civosim.After(civosim.Answer(408, map[string]any{"code": "timeout", "reason": "x"})), why: unknown, done: 1},
		"cut":                 {fault: civosim.Cut(), why: unknown},
		"cut after the work":  {fault: civosim.After(civosim.Cut()), why: unknown, done: 1},
		"page after the work": {fault: civosim.After(civosim.HTML(200)), why: unknown, done: 1},
		"panic of a decoder":  {fault: civosim.After(civosim.PanicReason(400)), why: unknown, done: 1},
	} {
		t.Run(name, func(t *testing.T) {
			sim := provider(t)
			sim.InjectNext(civosim.Recycle, 1, tc.fault)
			err := client(t, sim.URL()).Recycle(t.Context(), node1, before, nil)
			if tc.why == unknown {
				requireUnknown(t, err, `recycling node "node-1" (instance i-1)`)
			} else {
				requireRefused(t, err, tc.why, `recycling node "node-1" (instance i-1)`)
			}
			require.Len(t, sim.CallsTo(civosim.Recycle), 1, "one request, never a second")
			require.Len(t, sim.Done(civosim.Recycle), tc.done)
		})
	}
}

// TestAQuestionIsAskedAgainAndAWriteIsNot: two reads fail for a moment, and the third answer
// counts.
func TestAQuestionIsAskedAgainAndAWriteIsNot(t *testing.T) {
	t.Parallel()
	for name, call := range operations {
		for _, f := range []civosim.Fault{civosim.ServerError(), civosim.Cut(), civosim.HTML(502), civosim.Answer(429, nil), civosim.Answer(408, nil)} {
			t.Run(fmt.Sprintf("%s: %s", name, f), func(t *testing.T) {
				sim := provider(t)
				sim.InjectNext(civosim.ListInstances, 2, f)
				sim.InjectNext(civosim.ListPools, 2, f)
				require.NoError(t, call(t.Context(), client(t, sim.URL())))
				require.Len(t, sim.CallsTo(civosim.ListInstances), 3)
				for _, op := range []civosim.Op{civosim.HardReboots, civosim.SoftReboots, civosim.Recycle} {
					require.LessOrEqual(t, len(sim.CallsTo(op)), 1)
				}
			})
		}
	}
}

// TestAnAnswerAfterTheDeadlineIsReported: Late receives it with the caller's own name for the call.
func TestAnAnswerAfterTheDeadlineIsReported(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	sim.On(civosim.Recycle, func() { leave(); <-left })
	late := make(chan lateAnswer, 1)
	c := client(t, sim.URL(), func(o *Options) {
		o.Timeout, o.Late = 2*time.Minute, func(m engine.Machine, outcome remediations.CallOutcome, err error) {
			late <- lateAnswer{m, outcome, err}
		}
	})
	m := node1
	m.Attempt = "n7q4k2-3-1"
	requireUnknown(t, c.Recycle(ctx, m, before, nil), `recycling node "node-1" (instance i-1)`)
	close(left)
	answer := <-late
	require.NoError(t, answer.err)
	require.Equal(t, "n7q4k2-3-1", answer.machine.Attempt)
	require.Len(t, sim.Done(civosim.Recycle), 1)
}

// TestBackoffEndsWithItsTime: a caller without time for another wait gets what happened so far, and
// nothing is written.
func TestBackoffEndsWithItsTime(t *testing.T) {
	t.Parallel()
	sim := provider(t)
	sim.Inject(civosim.ListInstances, civosim.ServerError())
	c := client(t, sim.URL(), func(o *Options) { o.Backoff, o.IssueWithin = time.Hour, 5*time.Second })
	err := c.Recycle(t.Context(), node1, before, nil)
	asked := len(sim.Calls())
	for !strings.Contains(fmt.Sprint(err), "HTTP 500") && c.o.IssueWithin < time.Minute { // a busy machine used up the time
		asked = len(sim.Calls()) + 1
		c.o.IssueWithin *= 3
		err = c.Recycle(t.Context(), node1, before, nil)
	}
	requireRefused(t, err, reasonUnavailable, "HTTP 500")
	require.Len(t, sim.Calls(), asked)
	sim.Heal()
	patient(t, c)
	require.NoError(t, c.Reboot(t.Context(), node1, nil), "the turn is given back")
}
